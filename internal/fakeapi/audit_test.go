package fakeapi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAudit(t *testing.T) {
	for patch, problem := range map[string]string{
		`{}`: "",
		`{"metadata":{"labels":{"a":"1"},"annotations":{"a":"1"}}}`:               "",
		`{"series":{"count":5,"lastObservedTime":"2026-03-01T12:02:00.000000Z"}}`: "",
		`{"series":{"count":4,"lastObservedTime":"2026-03-01T12:02:00.000000Z"}}`: "the count of shop/cart-7.0 goes back from 5 to 4",
		`{"series":{"count":6,"lastObservedTime":"2026-03-01T12:00:30.000000Z"}}`: "the time of shop/cart-7.0 goes back",
		`{"series":null}`: "the time of shop/cart-7.0 goes back",
		`{"metadata":{"finalizers":["example.com/a"]}}`: "patch turns ",
	} {
		s := &Server{}
		audit := NewAudit(s)
		foreign := valid()
		foreign.Name = "foreign"
		s.Put(foreign)
		event, err := s.Create(t.Context(), valid())
		require.NoError(t, err)
		for _, data := range []string{`{"series":{"count":5,"lastObservedTime":"2026-03-01T12:01:00.000000Z"}}`, patch} {
			_, err = s.Patch(t.Context(), event, []byte(data))
			require.NoError(t, err)
		}
		if problem == "" {
			assert.Empty(t, audit.Problems())
			assert.EqualValues(t, 5, audit.Delivered())
			continue
		}
		require.NotEmpty(t, audit.Problems(), patch)
		assert.Contains(t, audit.Problems()[0], problem)
	}
}
