package sanitize

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/eventseries/eventseries/series"
)

func TestNote(t *testing.T) {
	for _, tt := range []struct {
		note string
		args []any
		want string
	}{
		// Without arguments, a percent sign is text.
		{"at 95%", nil, "at 95%"},
		{"%", nil, "%"},
		{"%s", nil, "%s"},
		{"%%%", nil, "%%%"},
		{"50%% of 95% full", nil, "50%% of 95% full"},
		// But valid formats are formatted.
		{"%%s", nil, "%s"},
		{"%%%%", nil, "%%"},
		{strings.Repeat("n", 4096), nil, strings.Repeat("n", 4096)},
		{strings.Repeat("n", 4097), nil, strings.Repeat("n", 4093) + "…"},
		{"%s", []any{strings.Repeat("n", 5000)}, strings.Repeat("n", 4093) + "…"},
		{"%v", []any{panicker{}}, "%!v(PANIC=String method: no string today)"},
		{"%v", []any{(*panicker)(nil)}, "<nil>"},
		{"%d %v", []any{1, panickingPanic{}}, "%d %v (arguments that panic: int, sanitize.panickingPanic)"},
		{"%v", []any{errors.New("bad\xff")}, "bad\uFFFD"},
	} {
		t.Run(fmt.Sprintf("%.20s", tt.note), func(t *testing.T) { assert.Equal(t, tt.want, Note(tt.note, tt.args)) })
	}
}

// Without arguments, a note is formatted if Sprintf understands it, as in client-go.
func FuzzNote(f *testing.F) {
	for _, s := range []string{"", "95%", "95%%", "%d", "%%%", "%!", "a %% b % c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, note string) {
		if len(note) > maxNote || !utf8.ValidString(note) || strings.Contains(note, "%!") {
			t.Skip()
		}
		got := Note(note, nil)
		format := note // vet would want a constant
		if like := fmt.Sprintf(format, []any{}...); !strings.Contains(like, "%!") && !strings.Contains(strings.ReplaceAll(note, "%%", ""), "%") {
			assert.Equal(t, like, got)
		} else {
			assert.Equal(t, note, got)
		}
	})
}

func TestKey(t *testing.T) {
	long := strings.Repeat("r", 129)
	cutLong := strings.Repeat("r", 125) + "…"
	for _, tt := range []struct{ reason, action, wantReason, wantAction string }{
		{"R", "A", "R", "A"},
		{"R", "", "R", "R"},
		{"", "A", "A", "A"},
		{"", "", "Unknown", "Unknown"},
		{long, "A", cutLong, "A"},
		{"R", long, "R", cutLong},
		{long, "", cutLong, cutLong},
		{long[:128], long[:128], long[:128], long[:128]},
		{"R\xff", "A", "R\ufffd", "A"},
	} {
		var key series.Key
		key.Reason, key.Action = ReasonAndAction(tt.reason, tt.action)
		regarding, related := Key(&key)
		require.NoError(t, errors.Join(regarding, related))
		assert.Equal(t, series.Key{Reason: tt.wantReason, Action: tt.wantAction}, key)
	}
}

func TestKeyReferences(t *testing.T) {
	n := func(count int) string { return strings.Repeat("n", count) }
	fits := series.Reference{APIVersion: n(253) + "/" + n(63), Kind: n(63), Namespace: n(63), Name: n(253), UID: types.UID(n(128)), FieldPath: n(1024)}
	for _, tt := range []struct {
		name      string
		ref, want series.Reference
		wantErr   string
	}{
		{"fits", fits, fits, ""},
		{"is not UTF-8",
			series.Reference{APIVersion: "a\xff", Kind: "b\xff", Namespace: "c\xff", Name: "d\xff", UID: "e\xff", FieldPath: "f\xff"},
			series.Reference{APIVersion: "a\ufffd", Kind: "b\ufffd", Namespace: "c\ufffd", Name: "d\ufffd", UID: "e\ufffd", FieldPath: "f\ufffd"}, ""},
		{"field path", series.Reference{FieldPath: n(1 << 20)}, series.Reference{FieldPath: n(1021) + "…"}, ""},
		{"apiVersion", series.Reference{APIVersion: n(318)}, series.Reference{APIVersion: n(314) + "…"}, "apiVersion has 318 bytes, more than 317"},
		{"kind", series.Reference{Kind: n(64)}, series.Reference{Kind: n(60) + "…"}, "kind has 64 bytes"},
		{"namespace", series.Reference{Namespace: n(64)}, series.Reference{Namespace: n(60) + "…"}, "namespace has 64 bytes"},
		{"name", series.Reference{Name: n(1 << 20)}, series.Reference{Name: n(250) + "…"}, `name has 1048576 bytes, more than 253: "` + n(maxText-len("…")) + `…"`},
		{"uid", series.Reference{UID: types.UID(n(129))}, series.Reference{UID: types.UID(n(125) + "…")}, "uid has 129 bytes"},
		{"name, once it is valid", series.Reference{Name: strings.Repeat("n\xff", 100)}, series.Reference{Name: strings.Repeat("n\ufffd", 62) + "n…"}, "name has 400 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, other := series.Key{Regarding: tt.ref}, series.Key{Related: tt.ref}
			err, none := Key(&one)
			require.NoError(t, none)
			none, related := Key(&other)
			require.NoError(t, none)
			assert.Equal(t, series.Key{Regarding: tt.want}, one)
			assert.Equal(t, series.Key{Related: tt.want}, other)
			assert.Equal(t, err, related)
			if tt.wantErr == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.wantErr)
			}
		})
	}
	for _, namespace := range []string{"../up", "a/b", "..", "100%"} {
		regarding, _ := Key(&series.Key{Regarding: series.Reference{Namespace: namespace}})
		require.ErrorContains(t, regarding, strconv.Quote(namespace))
	}
}

const maxAnnotations = 64 << 10

func TestAnnotations(t *testing.T) {
	big := strings.Repeat("x", maxAnnotations-len("example.com/big"))
	for _, tt := range []struct {
		name     string
		in, want map[string]string
		wantErr  string
	}{
		{name: "none"},
		{name: "fine", in: map[string]string{"a": "1", "Example.com/b": "ä"}, want: map[string]string{"a": "1", "Example.com/b": "ä"}},
		{name: "our own", in: map[string]string{"a": "1", series.AnnotationLastNote: "x"}, want: map[string]string{"a": "1"}},
		{name: "bad key", in: map[string]string{"a": "1", "no spaces": "2"}, want: map[string]string{"a": "1"}, wantErr: "no spaces"},
		{name: "empty key", in: map[string]string{"": "1"}, want: map[string]string{}, wantErr: "metadata.annotations"},
		{name: "as big as can be", in: map[string]string{"example.com/big": big}, want: map[string]string{"example.com/big": big}},
		{name: "too big by one", in: map[string]string{"example.com/big": big + "x", "a": "1"}, want: map[string]string{"a": "1"}, wantErr: "example.com/big"},
		// The result is the same each time.
		{name: "too big together", in: map[string]string{"example.com/big": big, "example.com/next": "2", "a": "1"}, want: map[string]string{"a": "1", "example.com/next": "2"}, wantErr: "example.com/big"},
		{name: "invalid value", in: map[string]string{"a": "x\xffy"}, want: map[string]string{"a": "x\uFFFDy"}},
		{
			name:    "too big once it is valid",
			in:      map[string]string{"a": strings.Repeat("\xffa", maxAnnotations/3)},
			want:    map[string]string{},
			wantErr: "Too long",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 10 {
				got, err := Annotations(tt.in, maxAnnotations)
				assert.Equal(t, tt.want, got)
				if tt.wantErr == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, tt.wantErr)
				}
			}
		})
	}
}

func FuzzAnnotations(f *testing.F) {
	f.Add("a", "b", "c", "d", uint32(1))
	f.Add("", "\xff", "example.com/x", "", uint32(300_000))
	f.Add("UPPER.example.com/x", "1", "a/b/c", "", uint32(70_000))
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string, repeat uint32) {
		if v2 != "" {
			v2 = strings.Repeat(v2, int(repeat)%300_000/len(v2)+1)
		}
		in := map[string]string{k1: v1, k2: v2}
		fit, err := Annotations(in, maxAnnotations)
		assert.Empty(t, apivalidation.ValidateAnnotations(fit, field.NewPath("metadata", "annotations")))
		size := 0
		for k, v := range fit {
			assert.Contains(t, in, k)
			assert.True(t, utf8.ValidString(v))
			size += len(k) + len(v)
		}
		assert.LessOrEqual(t, size, maxAnnotations)
		if err == nil {
			for k := range in {
				if !strings.HasPrefix(k, series.AnnotationPrefix) {
					assert.Contains(t, fit, k, "what is left out is said")
				}
			}
		}
	})
}

// panicker is an argument that panics.
type panicker struct{}

func (panicker) String() string { panic("no string today") }

// panickingPanic is a value that panics when it is formatted, with a value that does so, too.
type panickingPanic struct{}

func (p panickingPanic) Error() string { panic(p) }

func TestQualifiedName(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"simple", "backup-controller", "backup-controller"},
		{"with a domain", "example.com/backup-controller", "example.com/backup-controller"},
		{"upper case", "BackupController", "BackupController"},
		{"empty", "", "unknown"},
		{"a space", "backup controller", "backup-controller"},
		{"two slashes", "example.com/a/b", "example.com/a-b"},
		{"only a slash", "/", "unknown"},
		{"no domain", "/name", "name"},
		{"no name", "example.com/", "example.com/unknown"},
		{"a domain in upper case", "Example.COM/x", "example.com/x"},
		{"a domain with an underscore", "my_domain/x", "my-domain/x"},
		{"empty labels", "..example..com./x", "example.com/x"},
		{"punctuation at the ends", "-name-", "name"},
		{"nothing but punctuation", "._-", "unknown"},
		{"not ASCII", "größe", "gr--e"},
		{"not UTF-8", "a\xffb", "a-b"},
		{"63", strings.Repeat("n", 63), strings.Repeat("n", 63)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := qualifiedName(tt.in)
			assert.Empty(t, validation.IsQualifiedName(got))
			assert.Equal(t, tt.want, got)
		})
	}
}

// Identities of leader election (hostname_uuid) stay different when they are
// shortened.
func TestQualifiedNameOfALeaderElectionIdentity(t *testing.T) {
	host := "ip-10-0-0-1.eu-central-1.compute.internal-backup"
	one := qualifiedName(host + "_7f1a1f1e-0c3c-4b8e-9d6a-1f7a6e1d2c3b")
	two := qualifiedName(host + "_aaaa1f1e-0c3c-4b8e-9d6a-1f7a6e1d2c3b")
	assert.Empty(t, validation.IsQualifiedName(one))
	assert.Empty(t, validation.IsQualifiedName(two))
	assert.NotEqual(t, one, two)
	assert.True(t, strings.HasPrefix(one, host), one)
}

func FuzzQualifiedName(f *testing.F) {
	for _, s := range []string{"", "a", "a/b", "a/b/c", "A.B/c", strings.Repeat("a", 64), strings.Repeat("a.", 200) + "/x", "-a.-b/_", "ß/ß", "host_0b1c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := qualifiedName(in)
		assert.Empty(t, validation.IsQualifiedName(out), "%q of %q", out, in)
		assert.Equal(t, out, qualifiedName(out))
		if len(validation.IsQualifiedName(in)) == 0 {
			assert.Equal(t, in, out)
		}
	})
}

func FuzzShorten(f *testing.F) {
	f.Add("", uint8(63))
	f.Add(strings.Repeat("ä", 100), uint8(64))
	f.Add(strings.Repeat("-", 100), uint8(20))
	f.Fuzz(func(t *testing.T, in string, size uint8) {
		limit := int(size)%200 + 10
		in = strings.ToValidUTF8(in, "-")
		out := shorten(in, limit)
		assert.LessOrEqual(t, len(out), limit)
		assert.True(t, utf8.ValidString(out))
		assert.Equal(t, out, shorten(out, limit))
	})
}

const controller = "example.com/tester"

func TestInstance(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)

	long := strings.Repeat("i", 128)
	for _, tt := range []struct {
		controller, instance string
		want                 Identity
		repairs              int
	}{
		{controller, "", Identity{controller, controller + "-" + host}, 0}, // as in client-go
		{controller, "pod-1", Identity{controller, "pod-1"}, 0},
		{controller, long, Identity{controller, long}, 0},
		{controller, "a\xffb", Identity{controller, "a-b"}, 1},
	} {
		id, repairs := NewIdentity(tt.controller, tt.instance)
		assert.Equal(t, tt.want, id)
		assert.Len(t, repairs, tt.repairs)
	}
	id, repairs := NewIdentity("two words", long+"i")
	assert.Equal(t, "two-words", id.Controller)
	assert.Len(t, id.Instance, 128)
	assert.Len(t, repairs, 2)
}
