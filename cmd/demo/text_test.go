package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestThousands(t *testing.T) {
	for n, text := range map[int]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 123456: "123,456", 1234567: "1,234,567", -999: "-999", -1000: "-1,000",
	} {
		assert.Equal(t, text, thousands(n))
	}
}

func TestText(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{plural(0, "Event"), "0 Events"},
		{plural(1, "Event"), "1 Event"},
		{plural(2000, "Event"), "2,000 Events"},
		{cut("größer", 6), "größer"},
		{cut("größer", 5), "größ…"},
		{cut("größer", 1), "…"},
		{cut("größer", 0), "größer"},
		{oneLine(" a\tb\r\nc\n"), "a b c"},
		{seconds(999 * time.Millisecond), "0s"},
		{seconds(61 * time.Second), "61s"},
	} {
		assert.Equal(t, test.want, test.got)
	}
}
