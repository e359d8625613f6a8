package events

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/eventseries/eventseries/series"
)

func TestFormatNote(t *testing.T) {
	for _, tt := range []struct {
		note string
		args []any
		want string
	}{
		{"plain", nil, "plain"},
		{"%d of %s", []any{3, "four"}, "3 of four"},
		{"%d%%", []any{95}, "95%"},
		{"too many", []any{1}, "too many%!(EXTRA int=1)"},
		// Without arguments, what Sprintf would mangle is text.
		{"95% full", nil, "95% full"},
		{"at 95%", nil, "at 95%"},
		{"%", nil, "%"},
		{"%s", nil, "%s"},
		{"%%%", nil, "%%%"},
		{"50%% of 95% full", nil, "50%% of 95% full"},
		// What it would not mangle was written for it.
		{"95%% full", nil, "95% full"},
		{"%%s", nil, "%s"},
		{"%%%%", nil, "%%"},
		{strings.Repeat("n", 1024), nil, strings.Repeat("n", 1024)},
		{strings.Repeat("n", 1025), nil, strings.Repeat("n", 1021) + "…"},
		{"%s", []any{strings.Repeat("n", 5000)}, strings.Repeat("n", 1021) + "…"},
		{"%v", []any{panicker{}}, "%!v(PANIC=String method: no string today)"},
		{"%v", []any{(*panicker)(nil)}, "<nil>"},
		{"%v", []any{errors.New("bad\xff")}, "bad\uFFFD"},
	} {
		t.Run(fmt.Sprintf("%.20s", tt.note), func(t *testing.T) { assert.Equal(t, tt.want, formatNote(tt.note, tt.args)) })
	}
}

// A note without arguments that Sprintf understands comes out as Sprintf has it:
// who moves here from client-go has written it for that.
func FuzzFormatNote(f *testing.F) {
	for _, s := range []string{"", "95%", "95%%", "%d", "%%%", "%!", "a %% b % c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, note string) {
		if len(note) > series.MaxNoteBytes || !utf8.ValidString(note) || strings.Contains(note, "%!") {
			t.Skip()
		}
		got := formatNote(note, nil)
		format := note // vet would want a constant
		if like := fmt.Sprintf(format, []any{}...); !strings.Contains(like, "%!") && !strings.Contains(strings.ReplaceAll(note, "%%", ""), "%") {
			assert.Equal(t, like, got)
		} else {
			assert.Equal(t, note, got)
		}
	})
}

func TestFitKey(t *testing.T) {
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
		key.Reason, key.Action = reasonAndAction(tt.reason, tt.action)
		changed := fitKey(&key)
		assert.Equal(t, tt.wantReason, key.Reason)
		assert.Equal(t, tt.wantAction, key.Action)
		assert.Equal(t, strings.ContainsAny(tt.wantReason+tt.wantAction, "…\ufffd"), changed, "%q, %q", tt.reason, tt.action)
		assert.False(t, fitKey(&key), "it fits now")
	}
}

// Each word of a reference is looked at.
func TestFitKeyReferences(t *testing.T) {
	bad := series.Reference{APIVersion: "a\xff", Kind: "b\xff", Namespace: "c\xff", Name: "d\xff", UID: "e\xff", FieldPath: "f\xff"}
	good := series.Reference{APIVersion: "a\ufffd", Kind: "b\ufffd", Namespace: "c\ufffd", Name: "d\ufffd", UID: "e\ufffd", FieldPath: "f\ufffd"}
	key := series.Key{Regarding: bad, Related: bad}
	assert.True(t, fitKey(&key))
	assert.Equal(t, series.Key{Regarding: good, Related: good}, key)
}

func TestFitType(t *testing.T) {
	for _, eventtype := range []string{"Normal", "Warning"} {
		got, ok := fitType(eventtype)
		assert.True(t, ok, eventtype)
		assert.Equal(t, eventtype, got)
	}
	for _, eventtype := range []string{"", "normal", "Error", "Normal "} {
		_, ok := fitType(eventtype)
		assert.False(t, ok, eventtype)
	}
}

func TestFitAnnotations(t *testing.T) {
	big := strings.Repeat("x", series.MaxAnnotationBytes-len("example.com/big"))
	for _, tt := range []struct {
		name     string
		in, want map[string]string
		wantErr  string
	}{
		{name: "none"},
		{name: "fine", in: map[string]string{"a": "1", "Example.com/b": "ä"}, want: map[string]string{"a": "1", "Example.com/b": "ä"}},
		{name: "our own", in: map[string]string{"a": "1", series.AnnotationState: "Finished"}, want: map[string]string{"a": "1"}},
		{name: "bad key", in: map[string]string{"a": "1", "no spaces": "2"}, want: map[string]string{"a": "1"}, wantErr: "no spaces"},
		{name: "empty key", in: map[string]string{"": "1"}, want: map[string]string{}, wantErr: "metadata.annotations"},
		{name: "as big as can be", in: map[string]string{"example.com/big": big}, want: map[string]string{"example.com/big": big}},
		{name: "too big by one", in: map[string]string{"example.com/big": big + "x", "a": "1"}, want: map[string]string{"a": "1"}, wantErr: "example.com/big"},
		// Each time the same are left out, or the annotations would go to and fro.
		{name: "too big together", in: map[string]string{"example.com/big": big, "example.com/next": "2", "a": "1"}, want: map[string]string{"a": "1", "example.com/next": "2"}, wantErr: "example.com/big"},
		{name: "invalid value", in: map[string]string{"a": "x\xffy"}, want: map[string]string{"a": "x\uFFFDy"}},
		{
			name:    "too big once it is valid",
			in:      map[string]string{"a": strings.Repeat("\xffa", series.MaxAnnotationBytes/3)},
			want:    map[string]string{},
			wantErr: "Too long",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 10 {
				got, err := fitAnnotations(tt.in)
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

func FuzzFitAnnotations(f *testing.F) {
	f.Add("a", "b", "c", "d", uint32(1))
	f.Add("", "\xff", "example.com/x", "", uint32(300_000))
	f.Add("UPPER.example.com/x", "1", "a/b/c", "", uint32(70_000))
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string, repeat uint32) {
		if v2 != "" {
			v2 = strings.Repeat(v2, int(repeat)%300_000/len(v2)+1)
		}
		in := map[string]string{k1: v1, k2: v2}
		fit, err := fitAnnotations(in)
		assert.Empty(t, apivalidation.ValidateAnnotations(fit, field.NewPath("metadata", "annotations")))
		size := 0
		for k, v := range fit {
			assert.Contains(t, in, k)
			assert.True(t, utf8.ValidString(v))
			size += len(k) + len(v)
		}
		assert.LessOrEqual(t, size, series.MaxAnnotationBytes)
		if err == nil {
			for k := range in {
				if !strings.HasPrefix(k, series.AnnotationPrefix) {
					assert.Contains(t, fit, k, "what is left out is said")
				}
			}
		}
	})
}

// panicker is an argument that does not want to be formatted.
type panicker struct{}

func (panicker) String() string { panic("no string today") }
