// Package record is a drop-in for k8s.io/client-go/tools/record: it has all its names,
// and records events of legacy call sites as series.
//
// # Usage
//
// Replace the import path, and nothing else:
//
//	-	"k8s.io/client-go/tools/record"
//	+	"github.com/eventseries/eventseries/compat/record"
package record
