package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestText(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{thousands(0), "0"},
		{thousands(999), "999"},
		{thousands(1000), "1,000"},
		{thousands(12345), "12,345"},
		{thousands(123456), "123,456"},
		{thousands(1234567), "1,234,567"},
		{thousands(-999), "-999"},
		{thousands(-1000), "-1,000"},
		{plural(0, "Event"), "0 Events"},
		{plural(1, "Event"), "1 Event"},
		{plural(2000, "Event"), "2,000 Events"},
		{cut("größer", 6), "größer"},
		{cut("größer", 5), "größ…"},
		{cut("größer", 1), "…"},
		{cut("größer", 0), "größer"},
		{oneLine(" a\tb\r\nc\n"), "a b c"},
		{since(12345 * time.Millisecond), "12.3s"},
		{since(2*time.Hour + 90*time.Second), "2h1m30s"},
	} {
		assert.Equal(t, test.want, test.got)
	}
}
