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

var rewrite = flag.Bool("rewrite", false, "write the results into the scripts in testdata")

// TestScripts takes trackers through the scripts in testdata/scripts, which contain what must
// follow from each command. A line is
//
//	TIME COMMAND [KEY] ["note" or other arguments] -> what follows
//
// The time is that since the beginning. KEY is one letter, in upper case for a Warning. If
// notes tell series apart, KEY:NOTE is the key of one, and KEY:rest what the others share.
// "see a x10" is ten occurrences. The name of an Event is the base name, unless the line
// contains "salt1", "salt2", or "unique".
//
// "begin" advances, and puts the write of a key in flight if it can be made now; "next" the one
// that the schedule chooses; "write" also has the server answer it. The request ends with
// "answer"; with "gone", if the Event was deleted before; or with one of the failures. "wake"
// shows until when a dispatcher sleeps. "kill" starts another process.
//
// Each line shows which entries have changed: life, unless it is active; state; phase; and the
// next write, if any. After each line, the invariants and the books are checked.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			w := newWorld(t, Options{}, newServer(t))
			golden(t, file, func(command string) string {
				words := strings.Fields(command)
				if words[0] == "options" {
					w = newWorldWith(t, words[1:])
					return ""
				}
				result := run(w, parse(t, time.ParseDuration, words[0]), words[1:])
				w.check()
				return cmp.Or(result, "nothing")
			})
		})
	}
}

// TestMachine is the table of what a response, an occurrence, the time, and an eviction do to an
// entry, in testdata/machine.txt. A line is a script. It shows the result of the last command, how much
// of the count is stored, and when there is something to do again.
func TestMachine(t *testing.T) {
	golden(t, "testdata/machine.txt", func(line string) string {
		w, now, text := newWorld(t, Options{}, newServer(t)), time.Duration(0), ""
		for command := range strings.SplitSeq(line, ";") {
			words := strings.Fields(command)
			if words[0] == "options" {
				w = newWorldWith(t, words[1:])
				continue
			}
			if d, err := time.ParseDuration(words[0]); err == nil {
				now, words = d, words[1:]
			}
			text = run(w, now, words)
			w.check()
		}
		if e := w.find("a"); e != nil {
			text += fmt.Sprintf(" | %s, stored %d of %d", w.place(e, now), e.stored.count, e.count)
		}
		return strings.TrimPrefix(text, " | ") + " | " + w.wake(now)
	})
}

// golden requires that each line of a file is a command and what run returns for it.
func golden(t *testing.T, file string, run func(command string) string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out strings.Builder
	if *rewrite {
		defer func() { require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o666)) }()
	}
	number := 0
	for want := range strings.Lines(string(text)) {
		got := want
		number++
		command, _, _ := strings.Cut(strings.TrimSpace(want), "->")
		if command != "" && command[0] != '#' {
			if result := run(strings.TrimSpace(command)); result != "" {
				got = fmt.Sprintf("%-28s -> %s\n", strings.TrimRight(command, " "), result)
			}
		}
		if !*rewrite && (got != want || t.Failed()) {
			t.Fatalf("%s:%d\n got %swant %safter\n%s", file, number, got, want, out.String())
		}
		out.WriteString(got)
	}
}

// run makes a step of a script.
func run(w *world, now time.Duration, words []string) string {
	w.t.Helper()
	arg := func(i int) string {
		if i < len(words) {
			return strings.Trim(words[i], `"`)
		}
		return ""
	}
	at := start.Add(now)
	return w.step(now, func() (text string) {
		switch words[0] {
		case "see": // KEY ["NOTE"] [NAME=VALUE] [xN]
			note, times := "", 1
			annotations := map[string]string{}
			for _, word := range words[2:] {
				name, value, isAnnotation := strings.Cut(word, "=")
				switch {
				case word[0] == 'x':
					times = parse(w.t, strconv.Atoi, word[1:])
				case isAnnotation:
					annotations[name] = value
				default:
					note = strings.Trim(word, `"`)
				}
			}
			for range times {
				text = w.see(arg(1), note, annotations, now)
			}
			return text
		case "begin":
			return w.begin(arg(1), now)
		case "next":
			if text = w.begin("", now); text == "no write" {
				return ""
			}
			return w.inFlight[len(w.inFlight)-1].key + " " + text
		case "answer":
			return w.answer(arg(1), now)
		case "write": // begin, and answer
			if text = w.begin(arg(1), now); text != "no write" {
				text += " | " + w.answer(arg(1), now)
			}
			return text
		case "gone": // the Event of the write is deleted, and then answer
			for _, f := range w.inFlight {
				if ev := w.remote.events[f.Series.Name]; f.key == arg(1) && ev != nil && ev.stranger == "" {
					w.remote.remove(f.Series.Name)
				}
			}
			return w.answer(arg(1), now)
		case string(lost), string(late), string(failed), string(unsent), string(pushedBack), string(denied), string(refused), string(local), string(missing):
			return w.fail(arg(1), failure(words[0]), parse(w.t, time.ParseDuration, cmp.Or(arg(2), "0s")), now)
		case "arrive":
			return w.arrive()
		case "advance":
			w.do(func() []Drop { return advance(w.tracker, at) })
		case "flush":
			return w.flush(now)
		case "settled":
			return w.settled()
		case "hurry":
			w.tracker.Hurry(at)
		case "evict":
			e := w.find(arg(1))
			w.do(func() []Drop {
				w.tracker.mu.Lock()
				defer w.tracker.mu.Unlock()
				w.tracker.evict(e, at)
				return w.tracker.dropped()
			})
		case "seal":
			w.tracker.Seal(DropReason(arg(1)))
		case "clear":
			w.do(func() []Drop { return w.tracker.Clear(DropReason(arg(1)), at) })
		case "status":
			return w.status(arg(1))
		case "sizes":
			return w.sizes()
		case "wake":
			return w.wake(now)
		case "stand": // KEY STATE xCOUNT FIRST LAST [NAME] [heartbeat=D] [window=D] [instance=I] [again]
			as := series.Series{
				State: parseState(w.t, arg(2)),
				Count: int32(parse(w.t, strconv.Atoi, strings.TrimPrefix(arg(3), "x"))),
				First: timeOf(parse(w.t, time.ParseDuration, arg(4))),
				Last:  timeOf(parse(w.t, time.ParseDuration, arg(5))),
			}
			name, again := "base", false
			for _, word := range words[6:] {
				switch what, value, _ := strings.Cut(word, "="); what {
				case "heartbeat":
					as.Heartbeat = parse(w.t, time.ParseDuration, value)
				case "instance":
					as.Instance = value
				case "window":
					as.Window = parse(w.t, time.ParseDuration, value)
				case "again":
					again = true
				default:
					name = word
				}
			}
			w.stand(arg(1), as, name, again)
			return w.server(arg(1))
		case "stranger": // KEY NAME WHAT
			w.strange(arg(1), arg(2), strangeness(arg(3)), now)
			return w.server(arg(1))
		case "meddle": // KEY xCOUNT STATE
			w.meddle(arg(1), parse(w.t, strconv.Atoi, strings.TrimPrefix(arg(2), "x")), parseState(w.t, arg(3)), now)
			return w.server(arg(1))
		case "change": // KEY FIELD
			w.remote.change(arg(1), arg(2))
			return w.server(arg(1))
		case "delete": // KEY [NAME]
			k, _ := w.key(arg(1))
			require.True(w.t, w.remote.remove(nameOf(k, arg(2))), "nothing is there")
		case "server":
			return w.server(arg(1))
		case "list":
			return w.list()
		case "restore":
			return w.restore(now)
		case "kill":
			return w.kill(now)
		default:
			w.t.Fatalf("no such command: %q", words)
		}
		return ""
	})
}

func parse[T any](t *testing.T, as func(string) (T, error), text string) T {
	t.Helper()
	v, err := as(text)
	require.NoError(t, err)
	return v
}

func parseState(t *testing.T, text string) series.State {
	t.Helper()
	state, ok := series.ParseState(text)
	require.True(t, ok, text)
	return state
}

func newWorldWith(t *testing.T, words []string) *world {
	t.Helper()
	var opts Options
	flags := flag.NewFlagSet("options", flag.ContinueOnError)
	flags.IntVar(&opts.Capacity, "capacity", 0, "")
	flags.DurationVar(&opts.FinishAfter, "finishAfter", 0, "")
	flags.DurationVar(&opts.MaxWindow, "window", 0, "")
	flags.DurationVar(&opts.EventTTL, "ttl", 0, "")
	flags.DurationVar(&opts.HeartbeatInterval, "heartbeat", 0, "")
	flags.DurationVar(&opts.FirstHeartbeat, "first", 0, "")
	distinct := flags.Int("distinct", 0, "")
	share := flags.Bool("share", false, "")
	for _, word := range words {
		require.NoError(t, flags.Parse([]string{"-" + word}))
	}
	if *share {
		opts.Shared = true
	}
	w := newWorld(t, opts, newServer(t))
	w.distinct = *distinct
	return w
}
