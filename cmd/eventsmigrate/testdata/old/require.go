// Package old requires the packages that the results of the tool import.
package old

import (
	_ "github.com/eventseries/eventseries/compat"
	_ "github.com/eventseries/eventseries/compat/record"
	_ "github.com/eventseries/eventseries/events"
)
