package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/casestudy/recorders"
)

const (
	kustomizeController = "kustomize-controller"
	// sourceModule contains the CustomResourceDefinitions of the sources.
	sourceModule = "github.com/fluxcd/source-controller@v1.9.0"

	// fluxInterval and fluxRetry are spec.interval and spec.retryInterval of the
	// Kustomizations, and the others the defaults of the controller, before they are
	// scaled.
	fluxInterval       = time.Hour
	fluxRetry          = time.Minute
	fluxQPS, fluxBurst = 50, 300
	fluxConcurrent     = 4

	// The names of the Kustomizations begin with one of these, and the names of their
	// Events as well.
	healthy  = "app-"
	missing  = "missing-"  // the path does not exist
	rejected = "rejected-" // the API server rejects the manifest
)

var (
	fluxProgram = program{
		Module: "github.com/fluxcd/" + kustomizeController, Version: "v1.9.5",
		Users: []controlplane.User{{Name: kustomizeController, Token: kustomizeController + "-token", Groups: []string{"system:masters"}}},
	}
	fluxRecorders = []string{recorders.ToolsRecord, recorders.ToolsEvents, recorders.Eventseries, recorders.Import}

	// repository is the content of the source.
	repository = map[string]string{
		"app/manifests.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: blue}\n",
		"rejected/manifests.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {\"not a key\": blue}\n",
	}
	fluxKinds = map[string]schema.GroupVersionKind{
		"kustomizations":  {Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
		"gitrepositories": {Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
	}
)

// fluxResults are the figures of kustomize-controller.
type fluxResults struct {
	Machine, Date string
	fluxSetup
	Runs []*recorderRun
}

// fluxSetup is what all runs have in common.
type fluxSetup struct {
	Version         string
	Scale           int           // an hour takes an hour divided by this
	Interval, Retry time.Duration // of the Kustomizations, before they are scaled
	Kustomizations  int
}

// flux runs kustomize-controller with each recorder, one after the other.
func flux(ctx context.Context, cfg config, r *fluxResults) error {
	m := &mover{program: fluxProgram, root: cfg.root, work: cfg.work, duration: time.Hour / time.Duration(cfg.scale)}
	binary, err := m.buildFlux(ctx)
	if err != nil {
		return err
	}
	crds, err := m.fluxDefinitions(ctx)
	if err != nil {
		return err
	}
	apiserver, err := controlplane.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	artifact, err := pack(repository)
	if err != nil {
		return err
	}
	var posts atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /source.tar.gz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(artifact) })
	mux.HandleFunc("POST /events", func(_ http.ResponseWriter, _ *http.Request) { posts.Add(1) })
	receiver := httptest.NewServer(mux)
	defer receiver.Close()
	t := trial{
		binary: binary, user: fluxProgram.Users[0], groups: fluxGroups, scale: cfg.scale,
		prepare: func(ctx context.Context, c *cluster) error {
			return c.createFlux(ctx, cfg, crds, artifact, receiver.URL)
		},
		args:  func(ctx context.Context) ([]string, error) { return fluxArgs(ctx, cfg.scale, receiver.URL) },
		begin: func(ctx context.Context, c *cluster) error { return c.waitFlux(ctx, cfg.kustomizations) },
	}
	now := fluxSetup{m.Version, cfg.scale, fluxInterval, fluxRetry, cfg.kustomizations}
	if r.fluxSetup != now {
		*r = fluxResults{fluxSetup: now} // the others are no comparison
	}
	r.Machine, r.Date = machine(), time.Now().UTC().Format(time.DateOnly)
	return m.tryEach(ctx, cfg, t, apiserver, fluxRecorders, func(run *recorderRun) error {
		run.Posts = int(posts.Swap(0))
		r.Runs = replaceRun(r.Runs, run)
		return writeResults(cfg.resultsOf("flux"), r)
	})
}

// fluxArgs returns the arguments of the program.
func fluxArgs(ctx context.Context, scale int, url string) ([]string, error) {
	health, err := controlplane.FreePort(ctx)
	return []string{
		"--events-addr=" + url + "/events", "--metrics-addr=0", "--health-addr=127.0.0.1:" + strconv.Itoa(health), "--watch-all-namespaces",
		"--concurrent=" + strconv.Itoa(fluxConcurrent*scale), "--kube-api-qps=" + strconv.Itoa(fluxQPS*scale), "--kube-api-burst=" + strconv.Itoa(fluxBurst*scale),
	}, err
}

// buildFlux compiles the program. It differs from Flux' in the call that creates the
// manager.
func (m *mover) buildFlux(ctx context.Context) (binary string, err error) {
	if err := m.copy(ctx); err != nil {
		return "", err
	}
	if err := os.CopyFS(filepath.Join(m.dir(), "internal", "recorders"), os.DirFS(filepath.Join(m.root, "test", "casestudy", "recorders"))); err != nil {
		return "", err
	}
	const features = "\t\"github.com/fluxcd/" + kustomizeController + "/internal/features\"\n"
	for before, after := range map[string]string{
		"ctrl.NewManager(": "recorders.NewManager(",
		features:           features + strings.Replace(features, "features", "recorders", 1),
	} {
		if err := m.replace("main.go", before, after); err != nil {
			return "", err
		}
	}
	const module = recorderModule + "/controllerruntime"
	if _, err := m.output(ctx, "go", "mod", "edit", "-require="+module+"@v0.0.0", "-replace="+module+"="+filepath.Join(m.root, "controllerruntime")); err != nil {
		return "", err
	}
	return m.compileTrial(ctx, kustomizeController, ".")
}

// fluxDefinitions returns the CustomResourceDefinitions that the program needs.
func (m *mover) fluxDefinitions(ctx context.Context) (string, error) {
	source, err := m.download(ctx, sourceModule)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, dir := range []string{m.dir(), source} {
		files, err := filepath.Glob(filepath.Join(dir, "config", "crd", "bases", "*.yaml"))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			all.WriteString("---\n" + string(content))
		}
	}
	return all.String(), nil
}

// pack returns files as a compressed archive.
func pack(files map[string]string) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	archive := tar.NewWriter(compressed)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), compressed.Close())
	return b.Bytes(), err
}

// createFlux creates a source, and the Kustomizations. A tenth of them fails.
func (c *cluster) createFlux(ctx context.Context, cfg config, crds string, artifact []byte, url string) error {
	if err := c.createNamespace(ctx, shop); err != nil {
		return err
	}
	if err := c.create(ctx, crds); err != nil {
		return err
	}
	kind := fluxKinds["gitrepositories"]
	source := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": shop, "name": "repository"},
		"spec":     map[string]any{"interval": "1h", "url": "https://git.example.com/repository"},
	}}
	source.SetGroupVersionKind(kind)
	resource, err := c.resource(kind)
	if err != nil {
		return err
	}
	text, err := source.MarshalJSON()
	if err == nil {
		err = c.create(ctx, string(text))
	}
	if err != nil {
		return err
	}
	if source, err = resource.Namespace(shop).Get(ctx, source.GetName(), metav1.GetOptions{}); err != nil {
		return err
	}
	source.Object["status"] = map[string]any{
		"observedGeneration": source.GetGeneration(),
		"artifact": map[string]any{
			"url": url + "/source.tar.gz", "path": "source.tar.gz", "revision": "main@sha1:0123456789012345678901234567890123456789",
			"digest": fmt.Sprintf("sha256:%x", sha256.Sum256(artifact)), "lastUpdateTime": "2026-01-01T00:00:00Z",
		},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored artifact", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}},
	}
	if _, err := resource.Namespace(shop).UpdateStatus(ctx, source, metav1.UpdateOptions{}); err != nil {
		return err
	}
	creators, ctx := errgroup.WithContext(ctx)
	creators.SetLimit(4)
	for i := range cfg.kustomizations {
		creators.Go(func() error { return c.create(ctx, kustomization(i, cfg.scale)) })
	}
	return creators.Wait()
}

// kustomization returns a Kustomization. Every tenth one fails, in one of two ways.
func kustomization(i, scale int) string {
	name, path := healthy, "app"
	switch {
	case i%100 == 10:
		name, path = rejected, "rejected"
	case i%10 == 0:
		name, path = missing, "none"
	}
	scaled := func(d time.Duration) time.Duration { return d / time.Duration(scale) }
	name += strconv.Itoa(i)
	return fmt.Sprintf(`
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {namespace: %s, name: %s}
spec: {interval: %v, retryInterval: %v, path: %s, prune: true, targetNamespace: %[1]s, namePrefix: %[2]s-, sourceRef: {kind: GitRepository, name: repository}}
`, shop, name, scaled(fluxInterval), scaled(fluxRetry), path)
}

// waitFlux waits until each Kustomization has been reconciled once.
func (c *cluster) waitFlux(ctx context.Context, kustomizations int) error {
	resource, err := c.resource(fluxKinds["kustomizations"])
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 2*time.Second, false, func(ctx context.Context) (bool, error) {
		if err := c.running(); err != nil {
			return false, err
		}
		list, err := resource.Namespace(shop).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		reconciled := 0
		for _, item := range list.Items {
			if ready := condition(item, "Ready"); ready != nil && ready != "Unknown" {
				reconciled++
			}
		}
		return reconciled == kustomizations, nil
	})
}

// fluxGroups are groups of Kustomizations by the beginning of their names.
var fluxGroups = []string{healthy, missing, rejected}
