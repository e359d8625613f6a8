package bench

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
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

// StartRun begins a Run. It asks the go command for the version of client-go, which
// programs know of themselves, but tests do not.
func StartRun() Run {
	r := Run{
		Date:     time.Now().UTC().Format(time.DateOnly),
		CPU:      cpuModel(),
		CPUs:     runtime.NumCPU(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Go:       runtime.Version(),
	}
	if out, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/client-go").Output(); err == nil {
		r.ClientGo = strings.TrimSpace(string(out))
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
