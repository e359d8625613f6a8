// Package legacybroadcaster has what the replacements of the legacy broadcaster
// (k8s.io/client-go/tools/record) share.
package legacybroadcaster

import "time"

// Heartbeat and FirstHeartbeat are defaults of what replaces the legacy recorder, whose spam
// filter permits an event each 5 minutes, and which few programs shut down.
const Heartbeat, FirstHeartbeat = 5 * time.Minute, time.Second
