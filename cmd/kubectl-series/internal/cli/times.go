package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

var days = regexp.MustCompile(`^(\d+)([dw])(.*)$`)

// parseTime parses the value of a flag: a time, or how long it is ago.
func parseTime(flag, value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	ago, err := parseAgo(value)
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("%s %q: want a duration such as 30m, 2h, or 1d, or a time such as %s", flag, value, now.UTC().Format(time.RFC3339))
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
