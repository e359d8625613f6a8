package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScheduleDependsOnlyOnSeed(t *testing.T) {
	s := newSchedule(7, 3, 10*time.Minute)
	assert.Equal(t, s, newSchedule(7, 3, 10*time.Minute))
	assert.Equal(t, s.String(), newSchedule(7, 3, 10*time.Minute).String())
	assert.NotEqual(t, s, newSchedule(8, 3, 10*time.Minute))
	assert.NotEqual(t, s.emitters[0], s.emitters[1])

	shorter := newSchedule(7, 3, time.Minute)
	require.NotEmpty(t, shorter.server)
	assert.Equal(t, shorter.server, s.server[:len(shorter.server)])
	assert.Equal(t, shorter.network, s.network[:len(shorter.network)])
}

func TestScheduleStepsDoNotOverlap(t *testing.T) {
	for seed := range uint64(50) {
		s := newSchedule(seed, 4, 2*time.Minute)
		require.Len(t, s.emitters, 4)
		for _, steps := range slices.Concat([][]step{s.server, s.network}, s.emitters) {
			require.NotEmpty(t, steps)
			ended := time.Duration(0)
			for _, step := range steps {
				require.GreaterOrEqual(t, step.at, ended, "%v", step)
				require.GreaterOrEqual(t, step.lasts, time.Duration(0), "%v", step)
				ended = step.at + step.lasts
			}
			require.LessOrEqual(t, ended, 2*time.Minute)
		}
	}
}

func TestPushBacksDoNotChangeOtherSteps(t *testing.T) {
	const duration = 3 * time.Minute
	without := newSchedule(7, 3, duration)
	with := without.withPushBacks(7, duration)
	assert.Greater(t, len(with.pushBack), 2)
	assert.Equal(t, len(with.pushBack), with.count()[pushBack])
	assert.Contains(t, with.String(), string(pushBack))
	assert.Equal(t, with, without.withPushBacks(7, duration))
	with.pushBack = nil
	assert.Equal(t, without, with)
}

func TestShortScheduleContainsAllFaults(t *testing.T) {
	counts := newSchedule(defaultSeed, emitters, defaultDuration).count()
	for _, k := range slices.Concat(serverKinds, networkKinds, emitterKinds) {
		assert.NotZero(t, counts[k], "%s: %v", k, counts)
	}
}
