// Package eventtext formats notes, and makes strings fit into the fields of Events.
package eventtext

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// Valid replaces invalid UTF-8 in s. A protobuf client would send it unchanged, and a
// JSON client would replace it, so that the Event would not match the hash of its key.
func Valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}

// Cut shortens s to at most limit bytes. It cuts between two runes and appends an
// ellipsis. It also replaces invalid UTF-8, like [Valid]. limit must be at least 3, the
// size of the ellipsis in bytes.
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

// Format formats a note with its arguments. If args is empty and note contains a verb,
// Format returns note unchanged: "95% full" is not a format, but "95%% full" is.
func Format(note string, args []any) string {
	if len(args) > 0 {
		return sprintf(note, args...)
	}
	if !strings.Contains(strings.ReplaceAll(note, "%%", ""), "%") {
		return strings.ReplaceAll(note, "%%", "%")
	}
	return note
}

// Panic returns the text of what recover has returned.
func Panic(p any) string { return sprintf("%v", p) }

// sprintf is [fmt.Sprintf] without panics: fmt recovers from a panic of a method of an
// argument, but not if its value panics again when fmt formats that.
func sprintf(format string, args ...any) (text string) {
	defer func() {
		if recover() == nil {
			return
		}
		types := make([]string, len(args))
		for i, arg := range args {
			types[i] = fmt.Sprintf("%T", arg)
		}
		text = fmt.Sprintf("%s (arguments that panic: %s)", format, strings.Join(types, ", "))
	}()
	return fmt.Sprintf(format, args...)
}

// AppendSubdomain appends to an empty buffer the DNS-1123 subdomain that is most similar to s, as in the
// names of Events. It replaces other characters by '-', and removes those that no label can begin or end
// with. The result can be empty, or longer than the API server accepts.
func AppendSubdomain(to []byte, s string) []byte {
	for _, r := range s {
		switch isStart := len(to) == 0 || to[len(to)-1] == '.'; {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			to = append(to, byte(r))
		case r >= 'A' && r <= 'Z':
			to = append(to, byte(r)-'A'+'a')
		case isStart: // no label is empty or begins with another character
		case r == '.':
			to = append(bytes.TrimRight(to, "-"), '.')
		default:
			to = append(to, '-')
		}
	}
	return bytes.TrimRight(to, ".-")
}
