package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
)

var days = regexp.MustCompile(`^(\d+)([dw])(.*)$`)

// parseTime parses the value of a flag: a time, or how long it is ago. A time without a zone is local,
// as people type it.
func parseTime(flag, value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	zone, plain := time.Local, value
	if utc, ok := strings.CutSuffix(value, " UTC"); ok { // as describe and timelines print it
		zone, plain = time.UTC, utc
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		t, err := time.ParseInLocation(layout, plain, zone)
		switch {
		case err != nil:
		case t.After(now):
			return time.Time{}, fmt.Errorf("%s %q is in the future: it is %s, and a time without a zone is local", flag, value, now.Local().Format(time.RFC3339))
		default:
			return t, nil
		}
	}
	ago, err := parseAgo(value)
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("%s %q: want a duration such as 30m, 2h, or 1d, or a time such as %s", flag, value, now.Local().Format(time.RFC3339))
	}
	return now.Add(-ago), nil
}

// parseAgo is time.ParseDuration with days and weeks.
func parseAgo(value string) (time.Duration, error) {
	match := days.FindStringSubmatch(value)
	if match == nil {
		return time.ParseDuration(value)
	}
	n, err := strconv.Atoi(match[1])
	if err != nil || n > 36500 {
		return 0, fmt.Errorf("%q is too long", value)
	}
	unit := 24 * time.Hour
	if match[2] == "w" {
		unit *= 7
	}
	rest := time.Duration(0)
	if match[3] != "" {
		if rest, err = parseAgo(match[3]); err != nil {
			return 0, err
		}
	}
	return time.Duration(n)*unit + rest, nil
}

// timeFormats are the values of --time.
var timeFormats = []string{"relative", "local", "utc"}

// when formats a time in a column: as the caller chose, with the zone of at.
func (e *environment) when(t, at time.Time) string {
	if e.times == "relative" || t.IsZero() {
		return text.Age(t, at)
	}
	return t.In(at.Location()).Format(time.RFC3339)
}
