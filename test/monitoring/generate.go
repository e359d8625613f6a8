package monitoring

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Paths relative to the root of the repository.
const (
	dashboardFile  = "docs/monitoring/dashboard.json"
	pictureFile    = "docs/monitoring/chaos.svg"
	alertsFile     = "docs/monitoring/alerts.yaml"
	alertTestsFile = "docs/monitoring/alerts_test.yaml"
	pageFile       = "docs/metrics.md"
	recordingFile  = "test/monitoring/testdata/chaos.om.gz"
)

// Generate writes the dashboard and the picture into the repository with the given
// root.
func Generate(ctx context.Context, root string) error {
	r, err := readRecording(filepath.Join(root, filepath.FromSlash(recordingFile)))
	if err != nil {
		return err
	}
	svg, err := picture(ctx, r)
	if err != nil {
		return err
	}
	json, err := dashboard()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{dashboardFile: json, pictureFile: svg} {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), content, 0o666); err != nil {
			return fmt.Errorf("monitoring: %w", err)
		}
	}
	return nil
}
