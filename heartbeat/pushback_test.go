package heartbeat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A push-back without a time can concern one object, as with the limit of EventRateLimit for
// a source and object. An item that arrives afterwards, or while that one is in flight,
// probes next.
func TestPushBackOfOneItemHoldsUpNoOther(t *testing.T) {
	for _, inFlight := range []bool{false, true} {
		w := newWorld(t)
		bad := w.add("a", 3)
		sent := w.send()
		require.Equal(t, bad[:1], sent)
		var good []*item
		if inFlight {
			good = w.add("a", 1)
			require.Empty(t, w.send())
		}
		w.fail(sent[0], PushedBack)
		require.Empty(t, w.send())
		if !inFlight {
			good = w.add("a", 1)
		}
		w.sleep()
		require.Equal(t, good, w.send())
	}
}
