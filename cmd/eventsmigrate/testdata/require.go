// Package testdata requires the packages that the results of the tool import.
package testdata

import (
	_ "github.com/eventseries/eventseries/compat"
	_ "github.com/eventseries/eventseries/compat/record"
	_ "github.com/eventseries/eventseries/controllerruntime"
	_ "github.com/eventseries/eventseries/events"
	_ "sigs.k8s.io/controller-runtime"
)
