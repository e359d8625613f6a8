package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

// What a watch yields while its first list begins anew changes the list, and is no row of its
// own.
func TestExistingSeriesOfAWatch(t *testing.T) {
	item := func(name string, count int32) *query.Item {
		return &query.Item{Series: series.Series{Namespace: "shop", Name: name, Count: count}}
	}
	changes := []query.Change{
		{Type: query.Added, Item: item("a", 1)},
		{Type: query.Added, Item: item("b", 1)},
		{Type: query.Added, Item: item("c", 1)},
		{Type: query.Added, Item: item("d", 1)},
		{Type: query.Modified, Item: item("a", 2)},
		{Type: query.Deleted, Item: item("b", 1)},
		{Type: query.Left, Item: item("c", 7)},
		{Type: query.Left, Item: item("unknown", 1)},
		{Type: query.Stale, Item: item("d", 1)},
		{Type: query.Added, Item: item("b", 5)},
		{Type: query.Synced},
		{Type: query.Added, Item: item("later", 1)},
	}
	read := func() (change query.Change, err error, ok bool) {
		change, changes = changes[0], changes[1:]
		return change, nil, true
	}
	var got []string
	for item, err := range existing(read) {
		assert.NoError(t, err)
		got = append(got, fmt.Sprint(item.Name, item.Count))
	}
	assert.Equal(t, []string{"a2", "b5", "d1"}, got)
	assert.Len(t, changes, 1, "it stops at Synced")

	failed := errors.New("denied")
	for item, err := range existing(func() (query.Change, error, bool) { return query.Change{}, failed, true }) {
		assert.Nil(t, item)
		assert.Equal(t, failed, err)
	}
}
