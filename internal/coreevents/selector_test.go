package coreevents

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestCoreSelector(t *testing.T) {
	for _, test := range []struct {
		selector, server, oldServer string
		selects                     bool // an Event of example.com/x
	}{
		{"", "", "", true},
		{"type=Warning", "type=Warning", "type=Warning", true},
		{"reportingController=example.com/x", "reportingComponent=example.com/x", "", true},
		{"reportingController==example.com/x", "reportingComponent=example.com/x", "", true},
		{"reportingController=example.com/y", "reportingComponent=example.com/y", "", false},
		{"reportingController!=example.com/x", "reportingComponent!=example.com/x", "", false},
		{
			"regarding.name=a,reportingController=example.com/x,reason!=b",
			"reason!=b,involvedObject.name=a,reportingComponent=example.com/x", "reason!=b,involvedObject.name=a", true,
		},
		{`regarding.name=a\,b\=c`, `involvedObject.name=a\,b\=c`, `involvedObject.name=a\,b\=c`, true},
		// What there is not is the server's to refuse.
		{"reportingInstance=i", "reportingInstance=i", "reportingInstance=i", true},
	} {
		t.Run(test.selector, func(t *testing.T) {
			s, err := newCoreSelector(test.selector)
			require.NoError(t, err)
			assert.Equal(t, test.server, s.server.String())
			assert.Equal(t, test.oldServer, s.oldServer.String())
			assert.Equal(t, test.server != test.oldServer, s.reduced)
			assert.Equal(t, test.selects, s.reporter.Matches(reporter(&corev1.Event{ReportingController: "example.com/x"})))
		})
	}
	_, err := newCoreSelector("a>b")
	require.ErrorContains(t, err, `coreevents: field selector "a>b"`)
}

// Every field that events.k8s.io/v1 selects by has the name that core/v1 gives
// it.
func TestCoreFields(t *testing.T) {
	for field, want := range map[string]string{
		"reason":                    "reason",
		"regarding.kind":            "involvedObject.kind",
		"regarding.namespace":       "involvedObject.namespace",
		"regarding.name":            "involvedObject.name",
		"regarding.uid":             "involvedObject.uid",
		"regarding.apiVersion":      "involvedObject.apiVersion",
		"regarding.resourceVersion": "involvedObject.resourceVersion",
		"regarding.fieldPath":       "involvedObject.fieldPath",
		"reportingController":       "reportingComponent",
		"type":                      "type",
		"metadata.namespace":        "metadata.namespace",
		"metadata.name":             "metadata.name",
	} {
		assert.Equal(t, want, coreField(field))
	}
}
