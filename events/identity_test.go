package events

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
)

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

// The identity that leader election gives its recorder has the form
// hostname_uuid. Two of them must not become one by being cut.
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

func TestInstance(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)

	id, repairs := newIdentity(controller, "")
	assert.Equal(t, identity{controller, controller + "-" + host}, id, "as client-go has it")
	assert.Empty(t, repairs)

	id, repairs = newIdentity(controller, "pod-1")
	assert.Equal(t, identity{controller, "pod-1"}, id)
	assert.Empty(t, repairs)

	id, repairs = newIdentity(controller, strings.Repeat("i", 128))
	assert.Len(t, id.instance, 128)
	assert.Empty(t, repairs)

	id, repairs = newIdentity("two words", strings.Repeat("i", 129))
	assert.Equal(t, "two-words", id.controller)
	assert.Len(t, id.instance, 128)
	assert.Len(t, repairs, 2)

	id, repairs = newIdentity(controller, "a\xffb")
	assert.Equal(t, "a-b", id.instance)
	assert.Len(t, repairs, 1)
}

// A bad name is said once, when the recorder is made, and is in every Event as
// the API server takes it.
func TestBadNameIsLoggedOnce(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		r := w.broadcaster.NewRecorder(testScheme(), "two words")
		for i := range 10 {
			r.Eventf(testPod(i), nil, "Normal", "Tested", "Testing", "note")
		}
		r.WithLogger(klog.Background()).Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note")
		w.flush(t)
		assert.Len(t, w.logs.with("Repaired a name", "two words", "two-words"), 1)
		list := w.server.list()
		assert.Len(t, list, 10)
		assert.Equal(t, "two-words", list[0].ReportingController)

		w.broadcaster.NewRecorder(testScheme(), controller)
		assert.Len(t, w.logs.with("Repaired a name"), 1)
	})
}
