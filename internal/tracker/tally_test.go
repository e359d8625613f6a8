package tracker

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A limit that is no limit gives each reason a row from the beginning.
func TestTalliesWithoutLimit(t *testing.T) {
	var x tallies
	x.init(math.MaxInt)
	for i := range 100 {
		k := TallyKey{"tester", "Warning", fmt.Sprint("Reason", i)}
		assert.Equal(t, k, x.count(k, 1))
	}
}

// A million reasons: the rows are bounded in the whole life of the process, none disappears
// or decreases, the sum is exact, and a reason that begins late and occurs often gets a row.
func TestTalliesOfAMillionReasons(t *testing.T) {
	const limit, reasons = 100, 1_000_000
	var x tallies
	x.init(limit)
	r := rand.New(rand.NewPCG(29, 2))
	before := map[TallyKey]uint64{}
	counted, late := uint64(0), uint64(0)
	count := func(reason string) {
		x.count(TallyKey{"tester", "Warning", reason}, 1)
		counted++
	}
	for i := range reasons {
		count(fmt.Sprint("Reason", i))
		if i > reasons/2 && r.IntN(10) == 0 {
			count("Late")
			late++
		}
		if i%1000 != 0 {
			continue
		}
		sum := uint64(0)
		for k, n := range x.rows {
			require.GreaterOrEqual(t, n, before[k], k)
			sum += n
		}
		require.Equal(t, counted, sum)
		require.GreaterOrEqual(t, len(x.rows), len(before))
		require.LessOrEqual(t, len(x.candidates), limit)
		before = maps.Clone(x.rows)
	}
	assert.True(t, x.limited)
	assert.Len(t, x.rows, limit/2+2, "the first half, the others, and Late: the made-up reasons earn no row")
	assert.EqualValues(t, 1, x.rows[TallyKey{"tester", "Warning", "Reason0"}])
	assert.InDelta(t, late, x.rows[TallyKey{"tester", "Warning", "Late"}], 1000, "but for what it had to earn")
}

func TestTallies(t *testing.T) {
	var x tallies
	x.init(2)
	for _, step := range []struct {
		key  TallyKey
		n    uint64
		want TallyKey
	}{
		{TallyKey{"a", "Normal", Other}, 1, TallyKey{"a", "Normal", Other}}, // a reason of that name
		{TallyKey{"a", "Normal", "A"}, 1, TallyKey{"a", "Normal", "A"}},
		{TallyKey{"a", "Normal", "B"}, 15, TallyKey{"a", "Normal", Other}},
		{TallyKey{"a", "strange", "B"}, 1, TallyKey{"a", Other, Other}},
		{TallyKey{"a", "Warning", "B"}, 1, TallyKey{Other, "Warning", Other}}, // no room for others of a
		{TallyKey{"a", "Normal", "B"}, 15, TallyKey{"a", "Normal", "B"}},
		{TallyKey{"a", "Normal", "C"}, 99, TallyKey{"a", "Normal", Other}}, // no row is left
		{TallyKey{Other, "Warning", "C"}, 1, TallyKey{Other, "Warning", Other}},
	} {
		assert.Equal(t, step.want, x.count(step.key, step.n), step.key)
	}
	assert.EqualValues(t, 115, x.rows[TallyKey{"a", "Normal", Other}])
	assert.Equal(t, 2, x.own)
	assert.Equal(t, 2, x.others)
}

// A scrape asks for the row of each series, under the lock of the tracker. A series without
// a new occurrence neither becomes a candidate nor makes it look at all candidates.
func TestTallyOfNothing(t *testing.T) {
	var x tallies
	x.init(4)
	for i := range 3 { // two get rows, and one is a candidate
		x.count(TallyKey{"a", "Normal", fmt.Sprint("Reason", i)}, 1)
	}
	before := maps.Clone(x.candidates)
	require.Len(t, before, 1)
	assert.Equal(t, TallyKey{"a", "Normal", Other}, x.count(TallyKey{"a", "Normal", "New"}, 0))
	assert.Equal(t, before, x.candidates)
}
