package heartbeat

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; zero: a new one each time")

// newRand returns a source of random numbers and says, if the test fails, how
// to have the same ones again.
func newRand(t *testing.T) *rand.Rand {
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to replay: go test ./heartbeat -run '%s' -seed %d", t.Name(), n)
		}
	})
	return rand.New(rand.NewPCG(n, 0))
}
