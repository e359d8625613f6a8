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

func TestPlural(t *testing.T) {
	assert.Equal(t, "0 Events", plural(0, "Event"))
	assert.Equal(t, "1 Event", plural(1, "Event"))
	assert.Equal(t, "2,000 Events", plural(2000, "Event"))
}

func TestCut(t *testing.T) {
	assert.Equal(t, "größer", cut("größer", 6))
	assert.Equal(t, "größ…", cut("größer", 5))
	assert.Equal(t, "…", cut("größer", 1))
	assert.Equal(t, "größer", cut("größer", 0), "no limit")
}

func TestOneLine(t *testing.T) {
	assert.Equal(t, "a b c", oneLine(" a\tb\r\nc\n"))
}

func TestSeconds(t *testing.T) {
	assert.Equal(t, "0s", seconds(999*time.Millisecond))
	assert.Equal(t, "61s", seconds(61*time.Second))
}
