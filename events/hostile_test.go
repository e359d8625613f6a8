package events

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// hostileText tries to begin a line of its own, to move the cursor, to end the
// quotation it is in, and to turn the direction of writing.
const hostileText = "x\nE0101 00:00:00.000000       1 forged.go:1] \"Forged\"\r\x1b[2J\u202e\" forged=\"yes\n >"

// syncBuffer is a buffer that may be used concurrently.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimSuffix(s.b.String(), "\n"), "\n")
}

// hostileStatus is what a server answers.
func hostileStatus(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: hostileText}}
}

// What users write into names, notes and annotations, and what a server answers,
// makes one line of printable characters of klog's text log, with nothing in it that
// looks like a key of its own.
func TestHostileInputInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out syncBuffer
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out), textlogger.Verbosity(4)))
		s := listerThatFails(errors.New(hostileText))
		b := NewBroadcasterWithOptions(s, Options{ReportingInstance: hostileText, OnDrop: func(Drop) { panic(hostileText) }})
		guardedLogger := guarded(logger)
		b.log.Store(&guardedLogger)
		recorder := b.NewRecorder(testScheme(), "two words"+hostileText)
		ctx := klog.NewContext(t.Context(), logger)
		require.NoError(t, b.StartRecordingToSinkWithContext(ctx))
		_, err := b.StartLogging(logger)
		require.NoError(t, err)
		_, err = b.StartEventWatcher(func(runtime.Object) { panic(errors.New(hostileText)) })
		require.NoError(t, err)

		answers := []error{
			errors.New(hostileText), statusError(429, 1),
			hostileStatus(403), hostileStatus(422), hostileStatus(500),
		}
		for i, answer := range answers {
			s.script(once(answer))
			pod := testPod(i)
			pod.Name += hostileText
			pod.Labels = map[string]string{hostileText: hostileText}
			for _, eventtype := range []string{"Warning", hostileText} {
				recorder.(AnnotatedEventRecorder).AnnotatedEventf(pod, testPod(0), map[string]string{hostileText: hostileText, "example.com/a": hostileText},
					eventtype, "Reason"+hostileText, "Action"+hostileText, "%s", hostileText)
			}
			recorder.Eventf(nil, nil, "Normal", "R", "A", hostileText)
			recorder.Eventf(pod, &bare{TypeMeta: metav1.TypeMeta{Kind: hostileText}}, "Normal", "R", "A", hostileText)
			badNamespace := testPod(0)
			badNamespace.Namespace = "../" + hostileText
			recorder.Eventf(badNamespace, nil, "Normal", "R", "A", hostileText)
			time.Sleep(3 * time.Minute)
		}
		s.script(func(ctx context.Context, _ request) error { <-ctx.Done(); return errors.New(hostileText) })
		recorder.Eventf(testPod(99), nil, "Normal", "R", "A", hostileText)
		b.Shutdown()

		line := regexp.MustCompile(`^[IE]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [a-z_]+\.go:\d+\] "([^"]+)"`)
		inStack := false
		seen := make(map[string]int)
		for _, l := range out.lines() {
			// The stack of a panic is ours, and of several lines.
			if inStack {
				inStack = l != " >"
				assert.NotContains(t, l, "forged")
				continue
			}
			inStack = strings.HasSuffix(l, " stack=<")
			if match := line.FindStringSubmatch(l); assert.NotNil(t, match, "%q", l) {
				seen[match[1]]++
			}
			for _, r := range l {
				if !strconv.IsPrint(r) {
					t.Errorf("%q in %q", r, l)
				}
			}
			assert.NotContains(t, l, ` forged="yes`)
		}
		t.Log(seen)
		for _, message := range []string{
			"Event occurred", "Dropped events", "Caught a panic", "Cannot write events, will try again", "Events are written again",
			"May not write events, will try again", "May write events again", "Cannot list events, will try again",
			"Repaired a name that the API server would not take", "Recorded an event without its related object",
			"Recorded an event without some of its annotations", "Sent an event", "Events were left when the broadcaster was shut down",
		} {
			assert.Positive(t, seen[message], message)
		}
	})
}
