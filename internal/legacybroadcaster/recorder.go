package legacybroadcaster

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/apigroup"
	"github.com/eventseries/eventseries/internal/legacyrecorder"
)

// LeaderElection is the reporting controller of leader election events, see [Recorders.New].
const LeaderElection = "leader-election"

// Recorders makes the legacy recorders of a broadcaster.
type Recorders struct {
	// Target receives the events.
	Target *events.Broadcaster
	// Action is that of [legacyrecorder.New].
	Action legacyrecorder.Action
	// DistinctNotes is that of [events.RecorderOptions].
	DistinctNotes int
	// Message, if set, returns the message of an Event that different messages share.
	Message func(*corev1.Event) string
}

// identity matches the identity of a leader election candidate, "<host name>_<UUID>".
var identity = regexp.MustCompile(`_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// New returns a recorder. The component of source becomes the reporting controller, and the host the
// reporting instance. The component of leader election changes with every restart, so [LeaderElection]
// replaces it.
func (r Recorders) New(scheme *runtime.Scheme, source corev1.EventSource) *legacyrecorder.Recorder {
	opts := events.RecorderOptions{DistinctNotes: r.DistinctNotes, ReportingInstance: source.Host}
	if r.Message != nil {
		opts.CombinedNote = func(event *eventsv1.Event) string { return r.Message(apigroup.ToCoreWithDeprecatedFields(event)) }
	}
	controller := source.Component
	if identity.MatchString(controller) {
		controller = LeaderElection
	}
	return legacyrecorder.New(r.Target.NewRecorderWithOptions(scheme, controller, opts), r.Action)
}
