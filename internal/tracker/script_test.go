package tracker

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/series"
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
// "begin" puts an entry in flight, whatever is before it, and "next" the one that the
// schedule chooses. The request ends with "answer", if a server handles it that
// remembers what it was told; with "gone", if the Event was deleted before; or with
// "refuse" or one of the failures. "advance" handles all deadlines; "expire" and "beat"
// that of one entry. "kill" starts a new process.
//
// Each line shows which entries have changed: whether they are closing, the phase,
// and the next write, if any. Invariants are checked after each line.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			p := newPair(t, fixed, newServer(t))
			golden(t, file, func(command string) string {
				fields := strings.Fields(command)
				if fields[0] == "options" {
					opts, distinct := parseOptions(t, fields[1:])
					p = newPair(t, opts, newServer(t))
					p.w.distinct, p.o.distinct = distinct, distinct
					return ""
				}
				result := runCommand(t, p, parse(t, time.ParseDuration, fields[0]), fields[1:])
				p.w.check()
				return cmp.Or(result, "nothing")
			})
		})
	}
}

// fixed is what scripts have as long as they choose no window: all series that have been
// quiet for six minutes are over, and do not continue.
var fixed = Options{MaxWindow: 6 * time.Minute}

// golden requires that each line of a file is a command and what run returns for it.
func golden(t *testing.T, file string, run func(command string) string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		command, _, _ := strings.Cut(strings.TrimSpace(line), "->")
		if command != "" && command[0] != '#' {
			if result := run(strings.TrimSpace(command)); result != "" {
				line = fmt.Sprintf("%-36s -> %s\n", strings.TrimRight(command, " "), result)
			}
		}
		out.WriteString(line)
		require.False(t, t.Failed(), "after\n%s", out.String())
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o666))
		return
	}
	require.Equal(t, string(text), out.String())
}

// runCommand makes a step of a script with both machines. It returns what the
// tracker did.
func runCommand(t *testing.T, p pair, now time.Duration, words []string) string {
	t.Helper()
	p.w.latest = max(p.w.latest, now)
	arg := func(i int) string {
		if i < len(words) {
			return strings.Trim(words[i], `"`)
		}
		return ""
	}
	end := func(respond func() response) string { t.Helper(); return p.end(arg(1), now, respond) }
	answer := func() response { return p.w.answer(arg(1), now) }
	begin := func(m machine) string { return m.begin(arg(1), now) }
	steps := map[string]func(machine) string{
		"begin":     begin,
		"advance":   func(m machine) string { return m.advance(now) },
		"expire":    func(m machine) string { return m.expire(arg(1), now) },
		"beat":      func(m machine) string { return m.beat(arg(1), now) },
		"flush":     func(m machine) string { return m.flush(now) },
		"settled":   machine.settled,
		"seal":      func(m machine) string { return m.seal(DropReason(arg(1))) },
		"clear":     func(m machine) string { return m.clear(DropReason(arg(1))) },
		"status":    func(m machine) string { return m.status(arg(1), now) },
		"accepting": machine.accepting,
		"kill":      func(m machine) string { return m.kill(now) },
	}
	if step, ok := steps[words[0]]; ok {
		return p.both(step)
	}
	switch words[0] {
	case "see":
		note, times := "", 1
		for _, word := range words[2:] {
			if n, ok := strings.CutPrefix(word, "x"); ok {
				times = parse(t, strconv.Atoi, n)
				continue
			}
			note = strings.Trim(word, `"`)
		}
		return p.both(func(m machine) (result string) {
			for range times {
				result = m.see(arg(1), note, now)
			}
			return result
		})
	case "next":
		return p.next(now)
	case "answer":
		return end(answer)
	case "write": // begin, and answer
		result := p.both(begin)
		return result + " | " + end(answer)
	case "gone": // the Event of the write is deleted, and then answer
		p.w.vanish(arg(1))
		return end(answer)
	case "arrive":
		return p.w.arrive()
	case string(lost), string(late), string(failed), string(unsent), string(pushedBack), string(denied):
		return end(func() response {
			return p.w.fail(arg(1), failure(words[0]), parse(t, time.ParseDuration, cmp.Or(arg(2), "0s")), now)
		})
	case "refuse":
		return end(func() response { return p.w.refuse(arg(1), DropReason(arg(2)), now) })
	case "stand": // KEY NAME STATE xCOUNT FIRST LAST [SUCCESSOR] [everyHEARTBEAT]
		p.w.stand(arg(1), parseStand(t, words[2:]))
		return p.w.server(arg(1))
	case "stranger": // KEY NAME WHAT
		p.w.strange(arg(1), parseNaming(t, arg(2)), strangeness(arg(3)), now)
		return p.w.server(arg(1))
	case "meddle": // KEY NAME xCOUNT STATE
		n := parse(t, strconv.Atoi, strings.TrimPrefix(arg(3), "x"))
		p.w.meddle(arg(1), parseNaming(t, arg(2)), n, parseState(t, arg(4)), now)
		return p.w.server(arg(1))
	case "delete": // KEY NAME
		return p.w.delete(arg(1), parseNaming(t, arg(2)))
	case "server":
		return p.w.server(arg(1))
	case "list":
		return p.w.list()
	case "restore": // [SPREAD]
		return p.restore(parse(t, parseFloat, cmp.Or(arg(1), "0")), now)
	}
	t.Fatalf("no such command: %q", words)
	return ""
}

func parse[T any](t *testing.T, as func(string) (T, error), text string) T {
	t.Helper()
	v, err := as(text)
	require.NoError(t, err)
	return v
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

func parseState(t *testing.T, text string) series.State {
	t.Helper()
	state, ok := series.ParseState(text)
	require.True(t, ok, text)
	return state
}

func parseStand(t *testing.T, words []string) earlier {
	t.Helper()
	require.GreaterOrEqual(t, len(words), 5)
	at := earlier{
		name:  parseNaming(t, words[0]),
		state: parseState(t, words[1]),
		count: parse(t, strconv.Atoi, strings.TrimPrefix(words[2], "x")),
		first: parse(t, time.ParseDuration, words[3]),
		last:  parse(t, time.ParseDuration, words[4]),
	}
	if every, ok := strings.CutPrefix(words[len(words)-1], "every"); ok {
		at.heartbeat, words = parse(t, time.ParseDuration, every), words[:len(words)-1]
	}
	if len(words) > 5 {
		successor := parseNaming(t, words[5])
		at.successor = &successor
	}
	return at
}

func parseOptions(t *testing.T, words []string) (opts Options, distinct int) {
	t.Helper()
	flags := flag.NewFlagSet("options", flag.ContinueOnError)
	flags.IntVar(&opts.Capacity, "capacity", 0, "")
	flags.DurationVar(&opts.FinishAfter, "finishAfter", 0, "")
	flags.DurationVar(&opts.MaxWindow, "window", 0, "")
	flags.DurationVar(&opts.EventTTL, "ttl", 0, "")
	flags.DurationVar(&opts.FirstHeartbeat, "first", 0, "")
	flags.IntVar(&distinct, "distinct", 0, "")
	share := flags.Bool("share", false, "")
	for _, word := range words {
		require.NoError(t, flags.Parse([]string{"-" + word}))
	}
	if *share {
		opts.Scope = SameController
	}
	if opts.MaxWindow == 0 {
		opts.MaxWindow = fixed.MaxWindow
	}
	return opts, distinct
}
