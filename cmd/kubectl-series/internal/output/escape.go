package output

import (
	"fmt"
	"unicode/utf8"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
)

// Escape returns JSON in which no character can control a terminal: it escapes those that
// encoding/json leaves as they are, such as U+009B. The value stays the same.
func Escape(data []byte) []byte {
	plain := true
	for _, b := range data {
		plain = plain && b < 0x7f
	}
	if plain {
		return data
	}
	escaped := make([]byte, 0, len(data)+64)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if text.IsPrintable(r) || r > 0xffff { // YAML has no escapes of JSON for larger ones, and they control nothing
			escaped = append(escaped, data[:size]...)
		} else {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		data = data[size:]
	}
	return escaped
}
