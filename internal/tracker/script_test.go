package tracker

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the results into the scripts in testdata/scripts")

// TestScripts takes a tracker and the oracle through the scripts in
// testdata/scripts. Both must do what the script says. A line is
//
//	TIME COMMAND [KEY OR ENTRY] ["note" or other arguments] -> what follows
//
// The time is that since the beginning. KEY is one letter, in upper case for a
// Warning; its entries are KEY/1, KEY/2 and so on. If notes tell series apart,
// KEY:NOTE is the key of one, and KEY:rest what the others share. "see a x10" is ten
// occurrences. NAME is "base", or "unique0@10m0s" for the first unique name of a
// series that began then.
//
// "begin" puts an entry in flight, whatever is before it. The request ends with
// "answer", if a server handles it that remembers what it was told; with "gone", if
// the Event was deleted before; or with "refuse" or one of the failures. "advance"
// handles all deadlines; "expire" and "beat" that of one entry. "kill" starts a new
// process.
//
// Each line shows which entries have changed: whether they are closing, the phase,
// and the next write, if any. Invariants are checked after each line.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := runScript(t, string(text))
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o666))
				return
			}
			require.Equal(t, string(text), got)
		})
	}
}

// runScript returns the script with the results.
func runScript(t *testing.T, script string) string {
	p := newPair(t, Options{})
	var out strings.Builder
	defer func() {
		if t.Failed() {
			t.Logf("after\n%s", out.String())
		}
	}()
	for number, line := range strings.SplitAfter(script, "\n") {
		command, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "->")
		fields := strings.Fields(command)
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
			out.WriteString(line)
			continue
		case fields[0] == "options":
			opts, distinct := parseOptions(t, fields[1:])
			p = newPair(t, opts)
			p.w.distinct, p.o.distinct = distinct, distinct
			out.WriteString(line)
			continue
		}
		now, err := time.ParseDuration(fields[0])
		require.NoError(t, err, "line %d", number+1)
		result := runCommand(t, p, now, fields[1:])
		if result == "" {
			result = "nothing"
		}
		fmt.Fprintf(&out, "%-36s -> %s\n", strings.TrimRight(command, " "), result)
		p.w.check()
		if t.Failed() {
			t.FailNow()
		}
	}
	return out.String()
}

func runCommand(t *testing.T, p pair, now time.Duration, words []string) string {
	t.Helper()
	arg := func(i int) string {
		if i < len(words) {
			return strings.Trim(words[i], `"`)
		}
		return ""
	}
	agreed := func(got, want string) string {
		t.Helper()
		require.Equal(t, want, got, "%s %q: the oracle does not agree", now, words)
		return got
	}
	step := func(do func(machine) string) string { t.Helper(); return agreed(p.both(do)) }
	begin := func(m machine) string { return m.begin(arg(1), now) }
	end := func(respond func() response) string { t.Helper(); return agreed(p.end(arg(1), now, respond)) }
	answer := func() response { return p.w.answer(arg(1), now) }
	switch words[0] {
	case "see":
		note, times := "", 1
		for _, word := range words[2:] {
			if n, ok := strings.CutPrefix(word, "x"); ok {
				times = parseInt(t, n)
				continue
			}
			note = strings.Trim(word, `"`)
		}
		return step(func(m machine) (result string) {
			for range times {
				result = m.see(arg(1), note, now)
			}
			return result
		})
	case "begin":
		return step(begin)
	case "answer":
		return end(answer)
	case "write": // begin, and answer
		result := step(begin)
		return result + " | " + end(answer)
	case "gone": // the Event of the write is deleted, and then answer
		p.w.vanish(arg(1))
		return end(answer)
	case string(lost), string(failed), string(unsent), string(pushedBack), string(denied):
		return end(func() response { return p.w.fail(arg(1), failure(words[0]), now) })
	case "refuse":
		return end(func() response { return p.w.refuse(arg(1), DropReason(arg(2)), now) })
	case "advance":
		return step(func(m machine) string { return m.advance(now) })
	case "expire":
		return step(func(m machine) string { return m.expire(arg(1), now) })
	case "beat":
		return step(func(m machine) string { return m.beat(arg(1), now) })
	case "flush":
		return step(func(m machine) string { return m.flush(now) })
	case "settled":
		return step(machine.settled)
	case "seal":
		return step(func(m machine) string { return m.seal(DropReason(arg(1))) })
	case "clear":
		return step(func(m machine) string { return m.clear(DropReason(arg(1))) })
	case "status":
		return step(func(m machine) string { return m.status(arg(1), now) })
	case "accepting":
		return step(machine.accepting)
	case "stand": // KEY NAME STATE xCOUNT FIRST LAST [SUCCESSOR]
		p.w.stand(arg(1), parseStand(t, words[2:]))
		return p.w.server(arg(1))
	case "stranger": // KEY NAME WHAT
		p.w.strange(arg(1), parseNaming(t, arg(2)), strangeness(arg(3)), now)
		return p.w.server(arg(1))
	case "meddle": // KEY NAME xCOUNT STATE
		state, ok := series.ParseState(arg(4))
		require.True(t, ok, arg(4))
		p.w.meddle(arg(1), parseNaming(t, arg(2)), parseInt(t, strings.TrimPrefix(arg(3), "x")), state, now)
		return p.w.server(arg(1))
	case "delete": // KEY NAME
		return p.w.delete(arg(1), parseNaming(t, arg(2)))
	case "server":
		return p.w.server(arg(1))
	case "list":
		return p.w.list()
	case "restore": // [SPREAD]
		spread := 0.0
		if len(words) > 1 {
			var err error
			spread, err = strconv.ParseFloat(words[1], 64)
			require.NoError(t, err)
		}
		return agreed(p.restore(spread, now))
	case "kill":
		return step(func(m machine) string { return m.kill(now) })
	}
	t.Fatalf("no such command: %q", words)
	return ""
}

func parseInt(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func parseStand(t *testing.T, words []string) (at earlier) {
	t.Helper()
	require.GreaterOrEqual(t, len(words), 5)
	at.name = parseNaming(t, words[0])
	var ok bool
	at.state, ok = series.ParseState(words[1])
	require.True(t, ok, words[1])
	at.count = parseInt(t, strings.TrimPrefix(words[2], "x"))
	var err error
	at.first, err = time.ParseDuration(words[3])
	require.NoError(t, err)
	at.last, err = time.ParseDuration(words[4])
	require.NoError(t, err)
	if len(words) > 5 {
		successor := parseNaming(t, words[5])
		at.successor = &successor
	}
	return at
}

func parseOptions(t *testing.T, words []string) (opts Options, distinct int) {
	t.Helper()
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "capacity":
			opts.Capacity, err = strconv.Atoi(value)
		case "finishAfter":
			opts.FinishAfter, err = time.ParseDuration(value)
		case "share":
			opts.Scope = SameController
		case "distinct":
			distinct, err = strconv.Atoi(value)
		case "ttl":
			opts.EventTTL, err = time.ParseDuration(value)
		default:
			t.Fatalf("no such option: %q", word)
		}
		require.NoError(t, err)
	}
	return opts, distinct
}

func parseDuration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}
