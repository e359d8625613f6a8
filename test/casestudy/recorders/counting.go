// Package recorders says which recorder of events a program of the case study gets, and
// counts what the program emits. Command casestudy copies it into Kubernetes.
package recorders

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// The names of the recorders.
const (
	ToolsEvents = "tools/events" // client-go's
	Eventseries = "eventseries"  // of this repository
)

// Config is the content of the file that $CASESTUDY_CONFIG names.
type Config struct {
	Recorder string
	Counts   string // the file for the counts
}

// ReadConfig reads the file that $CASESTUDY_CONFIG names.
func ReadConfig() (c Config, err error) {
	content, err := os.ReadFile(os.Getenv("CASESTUDY_CONFIG"))
	if err == nil {
		err = json.Unmarshal(content, &c)
	}
	if err != nil {
		return c, fmt.Errorf("recorders: %w", err)
	}
	return c, nil
}

// Count is the number of occurrences about an object.
type Count struct {
	Name  string // of the object
	Count int
}

// Counter counts events. Its zero value is not usable: use [NewCounter]. It is safe for
// concurrent use.
type Counter struct {
	mu     sync.Mutex
	counts map[string]int // by the name of the object
}

// NewCounter returns a counter that has counted nothing.
func NewCounter() *Counter { return &Counter{counts: make(map[string]int)} }

// Add counts an event about an object.
func (c *Counter) Add(object runtime.Object) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[accessor.GetName()]++
}

// Write writes a list of [Count] to a file.
func (c *Counter) Write(file string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Count, 0, len(c.counts))
	for name, n := range c.counts {
		list = append(list, Count{name, n})
	}
	content, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("recorders: %w", err)
	}
	return nil
}
