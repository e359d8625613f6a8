package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/query"
)

// source is where the Events come from: from a cluster, or from files.
type source struct {
	files  []string // empty for a cluster
	at     string
	events []eventsv1.Event
	time   time.Time // of the files; zero until they are read
}

func (s *source) addTo(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&s.files, "filename", "f", nil, "Read the Events from files instead of a cluster: JSON or YAML, a directory of must-gather, or - for the standard input")
	flags.StringVar(&s.at, "at", "", "The time to which ages and states of a file refer. By default, that of its last modification")
}

// errOffline says that a command needs a cluster.
var errOffline = errors.New("no cluster is used with --filename")

func (s *source) offline() bool { return len(s.files) > 0 }

// load reads the files once.
func (e *environment) load() error {
	if !e.offline() {
		if e.at != "" {
			return errors.New("--at is for --filename: pass a file")
		}
		return nil
	}
	if !e.time.IsZero() {
		return nil
	}
	for _, name := range e.files {
		if err := e.read(name); err != nil {
			return fmt.Errorf("--filename: %w", err)
		}
	}
	if e.at != "" {
		at, err := parseTime("--at", e.at, time.Now())
		if err != nil {
			return err
		}
		e.time = at
	}
	return nil
}

// eventFile matches the names under which must-gather and kubectl cluster-info dump write Events.
var eventFile = regexp.MustCompile(`(?i)(^|/)(events?([._-][^/]*)?|events/[^/]+)\.(json|ya?ml)$`)

// read reads a file, the standard input, or the files with Events in a directory.
func (e *environment) read(name string) error {
	if name == "-" {
		events, err := query.ReadEvents(e.In)
		e.add(events, time.Now())
		if f, ok := e.In.(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				e.time = info.ModTime()
			}
		}
		return err
	}
	root, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	found := false
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path != root && !eventFile.MatchString(filepath.ToSlash(path)) {
			return err
		}
		found = true
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		events, err := query.ReadEvents(f)
		if err != nil && path != root { // the others can be read
			e.warn(path, err)
			err = nil
		}
		e.add(events, info.ModTime())
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%s has no files with Events, such as events.json or core/events.yaml", name)
	}
	return err
}

func (s *source) add(events []eventsv1.Event, at time.Time) {
	s.events = append(s.events, events...)
	if at.After(s.time) {
		s.time = at
	}
}

// Now returns the time to which ages and states refer, in the zone of the caller's choice.
func (e *environment) Now() time.Time {
	now := e.time
	if now.IsZero() {
		now = time.Now()
	}
	if e.times == "local" {
		return now.Local()
	}
	return now.UTC()
}

// Since implements clock.PassiveClock.
func (e *environment) Since(t time.Time) time.Duration { return e.Now().Sub(t) }

// namespace returns the namespace of the caller's choice, or that of the context. It is empty for all of a
// file.
func (e *environment) namespace() (string, error) {
	if e.offline() {
		return *e.flags.Namespace, nil
	}
	namespace, _, err := e.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// mapper returns the kinds of the server or, without one, those of Kubernetes.
func (e *environment) mapper() (meta.RESTMapper, error) {
	if !e.offline() {
		return e.flags.ToRESTMapper()
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	added := sets.New[string]()
	for _, gv := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		for kind := range scheme.Scheme.KnownTypes(gv) {
			if gv.Group == "extensions" || added.Has(kind) { // a name without a group is that of one kind
				continue
			}
			added.Insert(kind)
			scope := meta.RESTScopeNamespace
			if slices.Contains(clusterScoped, kind) {
				scope = meta.RESTScopeRoot
			}
			mapper.Add(gv.WithKind(kind), scope)
		}
	}
	return mapper, nil
}

// clusterScoped are the kinds of Kubernetes without namespace that Events are about.
var clusterScoped = []string{
	"Node", "Namespace", "PersistentVolume", "StorageClass", "VolumeAttachment", "CSIDriver", "CSINode", "ClusterRole", "ClusterRoleBinding",
	"CertificateSigningRequest", "PriorityClass", "RuntimeClass", "IngressClass", "FlowSchema", "PriorityLevelConfiguration",
}

// fileArguments returns the flags for the files, to continue a command.
func (s *source) fileArguments() string {
	var b strings.Builder
	for _, name := range s.files {
		b.WriteString(" -f " + quote(name))
	}
	if s.at != "" {
		b.WriteString(" --at " + quote(s.at))
	}
	return b.String()
}
