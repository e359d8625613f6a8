package series

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
)

var newVectors = flag.String("vectors.new", "", "write the vectors of a release, such as v0.2.0, which must not exist yet")

// vector is what one version says about a series. Each later version must say the same:
// processes of both find each other's Events by their names, read them, and patch them.
type vector struct {
	Name   string // of the case
	Series Series // in

	Names      [Salts]string
	UniqueName string // of the first occurrence
	Event      json.RawMessage
	Patch      string    `json:",omitempty"` // of a series
	StaleAfter time.Time `json:",omitzero"`  // until when readers say Ongoing
}

// vectorCases returns the series of the vectors.
func vectorCases() []vector {
	change := func(name string, f func(*Series)) vector {
		s := testSeries()
		s.LastNote, s.Annotations, s.Heartbeat = "", nil, 0
		s.Key.ReportingInstance = "controller-0"
		f(s)
		if s.Instance == "" {
			s.Instance = s.Key.ReportingInstance // as it is read
		}
		s.Name = s.Key.Name(0)
		return vector{Name: name, Series: *s}
	}
	single := func(s *Series) { s.State, s.Count, s.Last = Singleton, 1, s.First }
	return []vector{
		change("singleton", single),
		change("ongoing", func(s *Series) { s.Heartbeat = 30 * time.Minute }),
		change("ongoing, slow", func(s *Series) { s.Heartbeat, s.Window = 30*time.Minute, 35*time.Minute }),
		change("finished", func(s *Series) { s.State = Finished }),
		change("unknown", func(s *Series) { s.State = Unknown }),
		change("of the controller", func(s *Series) { s.Key.ReportingInstance, s.Instance = "", "controller-1" }),
		change("notes", func(s *Series) { s.Heartbeat, s.LastNote = time.Hour, "last\nnote" }),
		change("annotations", func(s *Series) { s.Annotations = map[string]string{"example.com/a": "1", "b": ""} }),
		change("related", func(s *Series) {
			single(s)
			s.Key.Related = Reference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "4f1c9d52-0b0e-4c3a-9a39-0f4b1d6e2f10"}
		}),
		change("field path", func(s *Series) { single(s); s.Key.Regarding.FieldPath = "spec.containers{app}" }),
		change("cluster-scoped", func(s *Series) {
			single(s)
			s.Namespace, s.Key.Regarding = "kube-system", Reference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1"}
		}),
		change("name of an RBAC role", func(s *Series) { single(s); s.Key.Regarding.Name = "system:node-proxier" }),
		change("long name", func(s *Series) { single(s); s.Key.Regarding.Name = strings.Repeat("a.b-", 63) + "z" }),
		change("largest count", func(s *Series) { s.Count = math.MaxInt32 }),
	}
}

// say fills in what this version says.
func (v *vector) say(t *testing.T) {
	s := &v.Series
	for salt := range v.Names {
		v.Names[salt] = s.Key.Name(salt)
	}
	v.UniqueName = s.Key.UniqueName(s.First)
	event, err := json.Marshal(s.Event())
	require.NoError(t, err)
	// Before v0.34, client-go encodes the zero time of creation.
	v.Event = bytes.Replace(event, []byte(`,"creationTimestamp":null`), nil, 1)
	if s.Count > 1 {
		patch, err := s.Patch()
		require.NoError(t, err)
		v.Patch = string(patch)
	}
	if s.State == Ongoing {
		v.StaleAfter = s.Last.Add(time.Hour)
		for s.StateAt(v.StaleAfter) == Ongoing {
			v.StaleAfter = v.StaleAfter.Add(time.Hour)
		}
		for s.StateAt(v.StaleAfter) != Ongoing {
			v.StaleAfter = v.StaleAfter.Add(-time.Second)
		}
	}
}

func TestVectors(t *testing.T) {
	const dir = "testdata/vectors"
	if *newVectors != "" {
		vectors := vectorCases()
		for i := range vectors {
			vectors[i].say(t)
		}
		data, err := json.MarshalIndent(vectors, "", "  ")
		require.NoError(t, err)
		f, err := os.OpenFile(filepath.Join(dir, *newVectors+".json"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		require.NoError(t, err, "the vectors of a release never change")
		_, err = f.Write(append(data, '\n'))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	files, err := filepath.Glob(dir + "/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var vectors []vector
		require.NoError(t, json.Unmarshal(data, &vectors))
		require.GreaterOrEqual(t, len(vectors), 14)
		for _, want := range vectors {
			t.Run(filepath.Base(file)+"/"+want.Name, func(t *testing.T) {
				got := vector{Name: want.Name, Series: want.Series}
				got.say(t)
				assert.JSONEq(t, string(want.Event), string(got.Event))
				got.Event = want.Event
				assert.Equal(t, want, got)

				// What that version wrote is read as what it meant.
				var event eventsv1.Event
				require.NoError(t, json.Unmarshal(want.Event, &event))
				read, err := FromEvent(&event)
				require.NoError(t, err)
				read.First, read.Last = read.First.UTC(), read.Last.UTC()
				if want.Series.Key.ReportingInstance == "" {
					read.Key.ReportingInstance = "" // of the controller
				}
				assert.Equal(t, want.Series, *read)
				for _, name := range append(want.Names[:], want.UniqueName) {
					assert.True(t, isNamed(&read.Key, name))
				}
			})
		}
	}
}
