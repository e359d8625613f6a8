package docs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/events"
)

func TestOptionsForAShortTTL(t *testing.T) {
	opts := events.Options{
		EventTTL: 20 * time.Minute, // kube-apiserver --event-ttl=20m
	}
	assert.NoError(t, opts.Validate())
}
