package text

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/eventseries/eventseries/series"
)

// None stands for a value that does not exist, so that no cell of a table is empty.
const None = "-"

// Clean returns s on one line. It replaces repeated white space by one space, and what is
// not printable by "�".
func Clean(s string) string {
	if plain(s) {
		return s
	}
	return strings.Join(strings.Fields(Printable(s)), " ")
}

// Printable returns s with "�" for what is neither printable nor white space, except for
// the joiners of emoji and of some scripts. Of white space, it keeps what moves a cursor as usual: a
// carriage return would let the rest of a line hide its beginning.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case !IsPrintable(r):
			return unicode.ReplacementChar
		case r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
			return ' '
		default:
			return r
		}
	}, s)
}

// Joiners make a terminal draw characters as one, or as several.
const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// IsPrintable reports whether r can control neither a terminal nor the order of characters: it is
// printable, white space, or a joiner.
func IsPrintable(r rune) bool {
	const nextLine = '\u0085' // white space that is also a control character
	return unicode.IsPrint(r) || unicode.IsSpace(r) && r != nextLine || r == joiner || r == nonJoiner
}

// plain reports whether s consists of printable ASCII characters, and its spaces are single ones
// between others. Most strings of Events are plain.
func plain(s string) bool {
	space := true // as if one preceded s
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || space && s[i] == ' ' {
			return false
		}
		space = s[i] == ' '
	}
	return !space || s == ""
}

// Lines returns the lines of s. They are clean, and none is empty.
func Lines(s string) []string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = Clean(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// terminal measures text as terminals do: emoji are wide, also those of several characters.
var terminal = &runewidth.Condition{StrictEmojiNeutral: true}

// Width returns the number of columns that s takes in a terminal.
func Width(s string) int { return terminal.StringWidth(s) }

// Cut truncates s to a number of columns. The result ends with "…" if something is
// missing.
func Cut(s string, columns int) string {
	if columns <= 0 {
		return ""
	}
	return terminal.Truncate(s, columns, "…")
}

// CutMiddle is [Cut], but what is missing is in the middle: the names of Pods end with what
// distinguishes them.
func CutMiddle(s string, columns int) string {
	width := Width(s)
	if width <= columns || columns < 3 {
		return Cut(s, columns)
	}
	tail := terminal.TruncateLeft(s, width-columns/2, "")
	return Cut(s, columns-Width(tail)) + tail
}

// Pad appends spaces to s up to a number of columns.
func Pad(s string, columns int) string {
	return s + strings.Repeat(" ", max(columns-Width(s), 0))
}

// Age formats the time between then and now as kubectl does: "5m", or "3h12m". It returns
// [None] if then is zero, and "in 5m" for what is so late that no clock is ahead by that.
func Age(then, now time.Time) string {
	if then.IsZero() {
		return None
	}
	if ahead := then.Sub(now); ahead > series.ClockSkew {
		return "in " + Duration(ahead)
	}
	return Duration(now.Sub(then))
}

// Ago formats [Age] as a part of a sentence: "5m ago", or "in 5m".
func Ago(then, now time.Time) string {
	age := Age(then, now)
	if age == None || strings.HasPrefix(age, "in ") {
		return age
	}
	return age + " ago"
}

// Duration formats a duration as kubectl does. A negative duration is 0s: the clocks of
// machines differ. The longest duration is that of all times that are further apart.
func Duration(d time.Duration) string {
	if d == math.MaxInt64 {
		return ">" + duration.HumanDuration(d)
	}
	return duration.HumanDuration(max(d, 0))
}

// Rate formats occurrences per second in the unit that makes it at least one: "2.5/s",
// "12/m", "3/h", or "4/d". It returns [None] for 0.
func Rate(perSecond float64) string {
	if perSecond <= 0 || math.IsInf(perSecond, 0) || math.IsNaN(perSecond) {
		return None
	}
	for _, unit := range []struct {
		name    string
		seconds float64
	}{{"s", 1}, {"m", 60}, {"h", 3600}} {
		if n := perSecond * unit.seconds; n >= 0.995 {
			return number(n) + "/" + unit.name
		}
	}
	return number(perSecond*86400) + "/d"
}

func number(n float64) string {
	if n >= 9.95 {
		return fmt.Sprintf("%.0f", n)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
}

// english formats numbers.
var english = message.NewPrinter(language.English)

// Count formats a number with commas, as in 12,345.
func Count(n int64) string { return english.Sprint(n) }

// AtLeast marks a number that is a lower bound: 983+.
func AtLeast(number string, isLowerBound bool) string {
	if isLowerBound {
		return number + "+"
	}
	return number
}

// Plural formats a number of things, such as "2 Events".
func Plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Count(int64(n)) + " " + thing
}

// Object formats a reference as Kind/name, or as namespace/Kind/name if the object is in
// another namespace than the given one. A part of the object, such as a container, follows in
// braces: Pod/web-0{app}. It returns [None] for a reference without kind and name.
func Object(ref series.Reference, namespace string) string {
	if ref.Kind == "" && ref.Name == "" {
		return None
	}
	s := ref.Kind + "/" + ref.Name
	if part := ref.FieldPath; part != "" {
		if _, name, ok := strings.Cut(strings.TrimSuffix(part, "}"), "{"); ok {
			part = name
		}
		s += "{" + part + "}"
	}
	if ref.Namespace != "" && ref.Namespace != namespace {
		s = ref.Namespace + "/" + s
	}
	return Clean(s)
}
