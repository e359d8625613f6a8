// Package text makes notes of formats, and strings fit where the API server takes
// only so much.
package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// Valid returns s as valid UTF-8. A protobuf client would send anything else as it
// is, for others to stumble over, and a JSON client would change it on the way,
// so that the Event was not the one whose key was hashed.
func Valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}

// Cut returns s as valid UTF-8 of at most limit bytes. What is longer is cut
// between two runes and ends in an ellipsis, for which limit must have room.
func Cut(s string, limit int) string {
	s = Valid(s)
	if len(s) <= limit {
		return s
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}

// Format returns a note with its arguments. A note without arguments that has a
// verb is taken as it is: "95% full" is text, not a format. "95%% full" is one.
func Format(note string, args []any) string {
	if len(args) > 0 {
		return fmt.Sprintf(note, args...)
	}
	if !strings.Contains(strings.ReplaceAll(note, "%%", ""), "%") {
		return strings.ReplaceAll(note, "%%", "%")
	}
	return note
}
