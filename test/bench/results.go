package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// Results are the results of all parts. Those that did not run are empty.
type Results struct {
	Runs     map[string]Run `json:"runs"` // when and where each part ran
	Hot      []Hot          `json:"hot"`
	Parallel []Parallel     `json:"parallel"`
	Heap     []Heap         `json:"heap"`
	Fresh    Fresh          `json:"fresh"`
	Server   []Hour         `json:"server"`
	Fleet    []Hour         `json:"fleet"`
}

// ReadResults reads results from a file. If the file does not exist, they are empty.
func ReadResults(file string) (Results, error) {
	r := Results{Runs: make(map[string]Run)}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return Results{}, fmt.Errorf("bench: results %q: %w", file, err)
	}
	return r, nil
}

// Write writes the results to a file.
func (r *Results) Write(file string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("bench: results: %w", err)
	}
	return nil
}

// Run describes when and where a part ran.
type Run struct {
	Date     string        `json:"date"`
	Took     time.Duration `json:"took"`
	CPU      string        `json:"cpu"`
	CPUs     int           `json:"cpus"`
	Platform string        `json:"platform"`
	Go       string        `json:"go"`
	ClientGo string        `json:"clientGo"`
	Load     string        `json:"load"` // average over the minute before the run
}

var cpuModel = regexp.MustCompile(`(?m)^model name\s*: *(.*)$`)

// StartRun starts a Run. It asks the go command for the version of client-go, since
// test binaries have no build info.
func StartRun() Run {
	r := Run{
		Date:     time.Now().UTC().Format(time.DateOnly),
		CPUs:     runtime.NumCPU(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Go:       runtime.Version(),
	}
	if out, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/client-go").Output(); err == nil {
		r.ClientGo = strings.TrimSpace(string(out))
	}
	// Both files exist on Linux only.
	load, _ := os.ReadFile("/proc/loadavg")
	r.Load, _, _ = strings.Cut(string(load), " ")
	info, _ := os.ReadFile("/proc/cpuinfo")
	if match := cpuModel.FindSubmatch(info); match != nil {
		r.CPU = string(match[1])
	}
	return r
}
