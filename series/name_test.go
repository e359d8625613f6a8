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
		digits := fmt.Sprintf("%016x", k.hash())
		assert.Equal(t, strings.ReplaceAll(tt.base, hash, digits), k.BaseName(), tt.object)
		if tt.unique != "" {
			assert.Equal(t, strings.ReplaceAll(tt.unique, hash, digits), k.UniqueName(first, 0), tt.object)
		}
		checkNames(t, k, first, 3)
	}
	k := testKey("a")
	name := k.UniqueName(first, 0)
	assert.False(t, k.Named(name+"0"), "a time has at most 16 digits")
	assert.False(t, k.Named(k.BaseName()+"."), "a time has a digit")
	for _, unusual := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(0, -1), time.Unix(-1<<40, 0), time.Unix(1<<40, 0), time.UnixMicro(math.MaxInt64),
	} {
		checkNames(t, testKey("a"), unusual, 0)
	}
}

// checkNames checks that the names of a key are valid, distinct, and recognized.
func checkNames(t *testing.T, k *Key, first time.Time, n int) {
	t.Helper()
	names := []string{k.BaseName(), k.UniqueName(first, n), k.UniqueName(first, n+1)}
	other := *k
	other.Reason += "x"
	for i, name := range names {
		assert.Empty(t, validation.IsDNS1123Subdomain(name), name)
		assert.True(t, k.Named(name), name)
		assert.False(t, other.Named(name), name)
		assert.NotContains(t, names[:i], name)
		for _, like := range []string{name + "x", "x" + name, name + ".", strings.ToUpper(name), name[1:], name[:len(name)-1] + "g"} {
			assert.False(t, like != name && k.Named(like), "%q is only similar to %q", like, name)
		}
	}
}

func TestNamedRejectsOtherNames(t *testing.T) {
	k := testKey("a")
	base := k.BaseName()
	for _, name := range []string{
		"", ".", "..", "a", "pod-a", "pod-a.", "pod-a.0", "pod-a.0123456789abcdef",
		base + ".", base + ".xyz", base + ".-1", base + ".1.2",
		base + "." + strings.Repeat("0", 17),
		"a." + strings.Repeat("0", 251),
		strings.Repeat("0", 5000), "." + strings.Repeat("f", 5000),
	} {
		assert.False(t, k.Named(name), name)
	}
	assert.True(t, k.Named(base))
	assert.True(t, k.Named(base+".0"))
}

func FuzzBaseName(f *testing.F) {
	f.Add("nginx-0", "BackOff", int64(1_700_000_000_000_000_000), uint8(0))
	f.Add("system:discovery", "", int64(-1), uint8(255))
	f.Add(strings.Repeat("a.", 200), "R", int64(0), uint8(7))
	f.Add("..-..", "R", int64(math.MinInt64), uint8(7))
	f.Fuzz(func(t *testing.T, object, reason string, nanos int64, n uint8) {
		k := testKey("a")
		k.Regarding.Name, k.Reason = object, reason
		checkNames(t, k, time.Unix(0, nanos), int(n))
		k.Named(object) // does not panic
	})
}
