package fakeapi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/json"
)

// These are the examples of RFC 7386, appendix A, in which the patch is an object.
func TestMerge(t *testing.T) {
	for _, row := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a":"b"}`, `{}`, `{"a":"b"}`},
	} {
		var target, patch map[string]any
		require.NoError(t, json.Unmarshal([]byte(row.target), &target))
		require.NoError(t, json.Unmarshal([]byte(row.patch), &patch))
		got, err := json.Marshal(merge(target, patch))
		require.NoError(t, err)
		assert.JSONEq(t, row.want, string(got), "%s and %s", row.target, row.patch)
	}
}

// Any patch returns an Event or an API error.
func FuzzApplyPatch(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `[]`, `1`, ``, `{`, `{"note":1}`, `{"metadata":null}`, `{"series":{"count":2}}`, `{"metadata":{"annotations":{"a":null}}}`,
		`{"series":{"count":99999999999}}`, `{"eventTime":"yesterday"}`, `{"metadata":{"annotations":[]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		event := valid()
		before := event.DeepCopy()
		patched, err := applyPatch(event, patch)
		assert.Equal(t, before, event, "a copy is patched")
		if err != nil {
			assert.True(t, apierrors.IsBadRequest(err) || apierrors.IsInvalid(err), err)
			assert.Nil(t, patched)
			return
		}
		again, err := applyPatch(patched, patch)
		require.NoError(t, err)
		assert.Equal(t, patched, again, "a merge patch is idempotent")
	})
}
