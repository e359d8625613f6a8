package series

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNames(t *testing.T) {
	first := time.Unix(1_700_000_000, 123_456_000)
	const hash = "<hash>"
	for _, tt := range []struct{ object, base, unique string }{
		{"nginx", "nginx." + hash, "nginx." + hash + ".17979cfe3d85ca00"},
		{"a.b-c.d", "a.b-c.d." + hash, "a.b-c.d." + hash + ".17979cfe3d85ca00"},
		// Objects can have these names, and Events cannot.
		{"system:discovery", "system-discovery." + hash, ""},
		{"UPPER_case", "upper-case." + hash, ""},
		{"-a-.-b-", "a.b." + hash, ""},
		{"a..b", "a.b." + hash, ""},
		{"ünï", "n." + hash, ""},
		{"\xff\xfe", hash, ""},
		{"", hash, hash + ".17979cfe3d85ca00"},
		{":", hash, ""},
		{"...", hash, ""},
		// These names are too long.
		{strings.Repeat("a", 253), strings.Repeat("a", 236) + "." + hash, strings.Repeat("a", 219) + "." + hash + ".17979cfe3d85ca00"},
		{strings.Repeat("a", 235) + ".b", strings.Repeat("a", 235) + "." + hash, ""},
		{strings.Repeat("a", 235) + "--b", strings.Repeat("a", 235) + "." + hash, ""},
		{strings.Repeat(":", 5000), hash, ""},
	} {
		k := testKey("a")
		k.Regarding.Name = tt.object
		digits := fmt.Sprintf("%016x", k.hash(0))
		assert.Equal(t, strings.ReplaceAll(tt.base, hash, digits), k.Name(0), tt.object)
		if tt.unique != "" {
			assert.Equal(t, strings.ReplaceAll(tt.unique, hash, digits), k.UniqueName(first), tt.object)
		}
		checkNames(t, k, first)
	}
	for _, unusual := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(0, -1), time.Unix(-1<<40, 0), time.Unix(1<<40, 0), time.UnixMicro(math.MaxInt64),
	} {
		checkNames(t, testKey("a"), unusual)
	}
}

// isNamed reports whether name is one of a key, whose series began when those of tests do.
func isNamed(k *Key, name string) bool {
	_, ok := k.Salt(name, testSeries().First)
	return ok
}

// checkNames checks that the names of a key are valid, distinct, and recognized.
func checkNames(t *testing.T, k *Key, first time.Time) {
	t.Helper()
	var names []string
	for salt := range Salts {
		names = append(names, k.Name(salt))
	}
	names = append(names, k.UniqueName(first))
	other := *k
	other.Reason += "x"
	for i, name := range names {
		assert.Empty(t, validation.IsDNS1123Subdomain(name), name)
		salt, ok := k.Salt(name, first)
		assert.True(t, ok, name)
		assert.Equal(t, i, salt, name)
		_, ok = other.Salt(name, first)
		assert.False(t, ok, name)
		assert.NotContains(t, names[:i], name)
		for _, like := range []string{name + "x", "x" + name, name + ".", strings.ToUpper(name), name[1:], name[:len(name)-1] + "g"} {
			_, ok := k.Salt(like, first)
			assert.False(t, like != name && ok, "%q is only similar to %q", like, name)
		}
	}
	_, ok := k.Salt(names[Salts], first.Add(time.Microsecond))
	assert.False(t, ok, "another first occurrence")
}

func FuzzName(f *testing.F) {
	f.Add("nginx-0", "BackOff", int64(1_700_000_000_000_000_000))
	f.Add("system:discovery", "", int64(-1))
	f.Add(strings.Repeat("a.", 200), "R", int64(0))
	f.Add("..-..", "R", int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, object, reason string, nanos int64) {
		k := testKey("a")
		k.Regarding.Name, k.Reason = object, reason
		checkNames(t, k, time.Unix(0, nanos))
		k.Salt(object, time.Unix(0, nanos)) // does not panic
	})
}
