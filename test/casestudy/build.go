package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	kubernetesModule  = "k8s.io/kubernetes"
	kubernetesVersion = "v1.36.3"
	// stagingVersion is that of the modules that Kubernetes replaces by directories of its
	// own repository, which are not in the module cache.
	stagingVersion = "v0.36.3"
	// recorderModule is the module of this repository.
	recorderModule = "github.com/eventseries/eventseries"
)

// builder compiles a program as a part of a copy of Kubernetes.
type builder struct {
	root string // of this repository
	dir  string // of the copy
}

// scheduler copies Kubernetes from the module cache, adds the program in
// testdata/scheduler, and compiles it.
func (b builder) scheduler(ctx context.Context, apiserver string) (binary string, err error) {
	if err := b.copyKubernetes(ctx); err != nil {
		return "", err
	}
	here := filepath.Join(b.root, "test", "casestudy")
	if err := os.CopyFS(filepath.Join(b.dir, "cmd", "scheduler"), os.DirFS(filepath.Join(here, "testdata", "scheduler"))); err != nil {
		return "", err
	}
	counting, err := os.ReadFile(filepath.Join(here, "recorders", "counting.go"))
	if err == nil {
		err = os.Mkdir(filepath.Join(b.dir, "cmd", "recorders"), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, "cmd", "recorders", "counting.go"), counting, 0o644)
	}
	if err == nil {
		err = b.require(ctx, apiserver)
	}
	if err != nil {
		return "", err
	}
	log.Print("kube-scheduler: compile")
	binary = filepath.Join(filepath.Dir(b.dir), "kube-scheduler")
	_, err = b.output(ctx, "build", "-o", binary, "./cmd/scheduler")
	return binary, err
}

func (b builder) copyKubernetes(ctx context.Context) error {
	if err := os.RemoveAll(b.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	out, err := b.output(ctx, "mod", "download", "-json", kubernetesModule+"@"+kubernetesVersion)
	if err != nil {
		return err
	}
	var source struct{ Dir string }
	if err := json.Unmarshal(out, &source); err != nil {
		return err
	}
	if err := os.CopyFS(b.dir, os.DirFS(source.Dir)); err != nil {
		return err
	}
	for _, name := range []string{"go.work", "go.work.sum", "vendor"} {
		if err := os.RemoveAll(filepath.Join(b.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// require makes the copy require this checkout, the published modules, and the versions of
// the control plane, so that what they share is compiled already.
func (b builder) require(ctx context.Context, apiserver string) error {
	out, err := b.output(ctx, "mod", "edit", "-json")
	if err != nil {
		return err
	}
	var file struct {
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(apiserver)
	if err != nil {
		return err
	}
	edit := []string{"mod", "edit", "-require=" + recorderModule + "@v0.0.0", "-replace=" + recorderModule + "=" + b.root}
	for _, r := range file.Replace {
		if strings.HasPrefix(r.New.Path, ".") {
			edit = append(edit, "-replace="+r.Old.Path+"="+r.Old.Path+"@"+stagingVersion)
		}
	}
	for _, module := range info.Deps {
		if module.Path != kubernetesModule && !strings.HasPrefix(module.Path, recorderModule) {
			edit = append(edit, "-require="+module.Path+"@"+module.Version)
		}
	}
	_, err = b.output(ctx, edit...)
	return err
}

// output runs the go command in the copy and returns what it prints to stdout. It compiles
// without cgo, as the control plane.
func (b builder) output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		const most = 2000 // bytes of the error
		text := strings.TrimSpace(stderr.String())
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, text[max(0, len(text)-most):])
	}
	return out, nil
}
