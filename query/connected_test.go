package query

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
)

func TestConnected(t *testing.T) {
	s := &apiServer{}
	reader := NewReader(s.start(t), Options{Clock: atTen})
	n := 0
	connect := func(kind, name, relatedKind, relatedName, reason string, changes ...func(*eventsv1.Event)) {
		in := func(kind string) string {
			if kind == "Node" {
				return ""
			}
			return "shop"
		}
		n++
		s.put(fmt.Sprintf("e%02d", n), append([]func(*eventsv1.Event){
			about(kind, in(kind), name, "u"), related(relatedKind, in(relatedKind), relatedName, ""), reported("c", "", reason),
		}, changes...)...)
	}
	connect("Pod", "checkout", "Node", "n1", "Scheduled")
	connect("Pod", "other", "Node", "n1", "Scheduled")
	connect("Claim", "orders", "Pod", "checkout", "Resized")
	connect("Claim", "orders", "Pod", "checkout", "WritesSuspended", recurred(2, 0))
	connect("Backup", "nightly", "Claim", "orders", "SnapshotFailed")
	connect("Backup", "nightly", "Bucket", "b", "Uploaded")
	connect("Bucket", "b", "Quota", "q", "Limited")
	connect("Pod", "checkout", "Pod", "checkout", "Itself")
	for i := range maxNeighbors {
		connect("Set", "web", "Pod", fmt.Sprintf("web-%d", i), "Created")
	}
	connect("Set", "web", "Pod", "checkout", "Created")
	s.put("no related object", about("Pod", "shop", "checkout", "u"))

	pod := Object{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "checkout", UID: "u1"}
	for _, test := range []struct {
		start Object
		depth int
		want  []string
	}{
		{pod, 0, []string{"checkout -1"}},
		{pod, 1, []string{"checkout -1", "orders 0 WritesSuspended", "n1 0 Scheduled", "web 0 Created"}},
		{pod, 3, []string{"checkout -1", "orders 0 WritesSuspended", "n1 0 Scheduled", "web 0 Created", "nightly 1 SnapshotFailed", "b 4 Uploaded"}},
		{Object{Kind: "Quota", Namespace: "shop", Name: "q"}, 2, []string{"q -1", "b 0 Limited", "nightly 1 Uploaded"}},
		{Object{Kind: "Node", Name: "n1", ClusterScoped: true}, 2, []string{"n1 -1"}},
		{Object{Kind: "Pod", Namespace: "other", Name: "checkout"}, 2, []string{"checkout -1"}},
	} {
		found, err := reader.Connected(t.Context(), []Object{test.start}, test.depth)
		require.NoError(t, err)
		var got []string
		for _, c := range found {
			s := fmt.Sprintf("%s %d", c.Object.Name, c.From)
			if c.Item != nil {
				s += " " + c.Item.Key.Reason
			}
			got = append(got, s)
			assert.Equal(t, c.Object.Namespace == "", c.Object.ClusterScoped)
			assert.Empty(t, c.Object.UID)
		}
		assert.Equal(t, test.want, got)
	}
	// A Set is no hub if it is what the caller asks for.
	found, err := reader.Connected(t.Context(), []Object{{Kind: "Set", Namespace: "shop", Name: "web"}}, 1)
	require.NoError(t, err)
	assert.Len(t, found, 2+maxNeighbors)
}
