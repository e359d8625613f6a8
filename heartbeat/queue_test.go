package heartbeat

import "time"

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// item is the least that can stand in a Queue.
type item struct{ slot int32 }

func (it *item) Slot() *int32 { return &it.slot }
