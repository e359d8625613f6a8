package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Results are what was measured. Parts that were not are empty.
type Results struct {
	// Runs says of each part when and where it was measured.
	Runs map[string]Run `json:"runs"`

	Hot        []Hot        `json:"hot"`
	Parallel   []Parallel   `json:"parallel"`
	Scale      []Scale      `json:"scale"`
	Heap       []Heap       `json:"heap"`
	Fresh      []Fresh      `json:"fresh"`
	Flood      []Flood      `json:"flood"`
	Loop       []Loop       `json:"loop"`
	Start      []Start      `json:"start"`
	Simulation []Simulation `json:"simulation"`
}

// ReadResults reads the results in a file. That there is none is no error.
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

// Write writes the results to a file, whole or not at all.
func (r *Results) Write(file string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("bench: results: %w", err)
	}
	temporary := filepath.Join(filepath.Dir(file), "."+filepath.Base(file))
	if err := os.WriteFile(temporary, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("bench: results: %w", err)
	}
	if err := os.Rename(temporary, file); err != nil {
		return fmt.Errorf("bench: results: %w", err)
	}
	return nil
}
