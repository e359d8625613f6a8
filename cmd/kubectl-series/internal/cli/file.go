package cli

import (
	"errors"
	"fmt"
	"io"
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
	"github.com/eventseries/eventseries/series"
)

// source is where the Events come from: from a cluster, or from files.
type source struct {
	files  []string // empty for a cluster
	at     string
	events []eventsv1.Event
	time   time.Time // of the files; zero until they are read
	copied bool      // time is that of a modification, which can be that of a copy
}

func (s *source) addTo(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&s.files, "filename", "f", nil, "Read the Events from files instead of a cluster: JSON or YAML, also compressed with gzip, a directory of must-gather, or - for the standard input")
	flags.StringVar(&s.at, "at", "", "The time to which ages and states of a file refer. By default, that of the must-gather, or of its last modification")
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
		return nil
	}
	var latest time.Time
	for i := range e.events {
		if last := query.FromEvent(&e.events[i], e.time).Last; last.After(latest) {
			latest = last
		}
	}
	if old := e.time.Sub(latest); e.copied && !latest.IsZero() && (old >= time.Hour || old < -series.ClockSkew) {
		e.warn("the states can be wrong", fmt.Errorf("the latest Event is of %s, and the file of %s: if it was copied, pass its time, such as --at %s",
			latest.UTC().Format(time.RFC3339), e.time.UTC().Format(time.RFC3339), latest.UTC().Format(time.RFC3339)))
	}
	return nil
}

// eventFile matches the names under which must-gather and kubectl cluster-info dump write Events.
var eventFile = regexp.MustCompile(`(?i)(^|/)(events?([._-][^/]*)?|events/[^/]+)\.(json|ya?ml)(\.gz)?$`)

// read reads a file, the standard input, or the files with Events in a directory.
func (e *environment) read(name string) error {
	if name == "-" {
		at := time.Now()
		if f, ok := e.In.(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				at = info.ModTime()
			}
		}
		return e.add("the standard input", e.In, at)
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
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		at := gathered(path)
		if at.IsZero() {
			e.copied, at = true, info.ModTime()
		}
		err = e.add(path, f, at)
		found = found || !errors.Is(err, query.ErrNoEvents)
		if err != nil && path != root { // the others can be read
			if !errors.Is(err, query.ErrNoEvents) {
				e.warn("a file cannot be read", err)
			}
			err = nil
		}
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%s has no files with Events, such as events.json or core/events.yaml", name)
	}
	return err
}

// add adds the Events of a file. If it can read some of them, it warns of the others.
func (e *environment) add(name string, r io.Reader, at time.Time) error {
	events, err := query.ReadEvents(r)
	e.events = append(e.events, events...)
	if at.After(e.time) {
		e.time = at
	}
	if err != nil && len(events) > 0 {
		e.warn(name+" is incomplete", err)
		return nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// gathered returns when must-gather wrote a file: the latest time in the file "timestamp" of the nearest
// directory that has one. It is zero if none has.
func gathered(path string) (latest time.Time) {
	path, err := filepath.Abs(path)
	for dir := filepath.Dir(path); err == nil && latest.IsZero(); dir = filepath.Dir(dir) {
		content, _ := os.ReadFile(filepath.Join(dir, "timestamp"))
		for line := range strings.Lines(string(content)) {
			value, _, _ := strings.Cut(strings.TrimSpace(line), " m=") // a monotonic time follows
			if at, err := time.Parse("2006-01-02 15:04:05.999999999 -0700 MST", value); err == nil && at.After(latest) {
				latest = at
			}
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return latest
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
