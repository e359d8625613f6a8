package bench

import (
	"bufio"
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Run says when and where something was measured.
type Run struct {
	Date     string        `json:"date"`
	Took     time.Duration `json:"took"`
	CPU      string        `json:"cpu"`
	CPUs     int           `json:"cpus"`
	Platform string        `json:"platform"`
	Go       string        `json:"go"`
	ClientGo string        `json:"clientGo"`
	// Load is how many processes wanted a processor just before, as the kernel has
	// averaged it over a minute. Empty where it does not say.
	Load string `json:"load"`
}

// StartRun begins a Run.
func StartRun() Run {
	r := Run{
		Date:     time.Now().UTC().Format(time.DateOnly),
		CPU:      cpuModel(),
		CPUs:     runtime.NumCPU(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Go:       runtime.Version(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "k8s.io/client-go" {
				r.ClientGo = dep.Version
			}
		}
	}
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.Load, _, _ = strings.Cut(string(data), " ")
	}
	return r
}

// cpuModel returns the name of the processor, or nothing where it is not known.
func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
