package query

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/series"
)

// ChangeType says what happened to a series.
type ChangeType string

const (
	// Added: the series exists, or matches the query for the first time.
	Added ChangeType = "Added"
	// Modified: the Event changed and still matches, or a time that was further ahead than
	// a clock can be is so no longer, and the series is ongoing.
	Modified ChangeType = "Modified"
	// Stale: the Event did not change, but its series is no longer ongoing, because its recorder
	// did not update the Event in time, or because of another Event: see [Item.StaleAt] and
	// [Item.Followed].
	Stale ChangeType = "Stale"
	// Left: the series does not match any longer, for example because it finished or
	// became stale, and the query selects ongoing ones.
	Left ChangeType = "Left"
	// Deleted: the Event was deleted or expired.
	Deleted ChangeType = "Deleted"
	// Synced: the changes before this one lead to the Events that existed when the watch
	// began. It has no Item, and occurs once.
	Synced ChangeType = "Synced"
)

// Change is a change of a series.
type Change struct {
	// Type says what happened.
	Type ChangeType
	// Item is the series after the change, or the last known one if Deleted. It is nil
	// for Synced.
	Item *Item
}

// Watch yields the series that q selects as Added, then one Synced, and then each
// change until ctx ends or the caller stops. If the server forgets the version of a first list
// of several pages, Watch begins that list anew, and there can be changes before Synced. It yields no version of an Event twice and
// misses no Event, even if the connection breaks, the server restarts, or the server has
// forgotten the version from which to continue (410 Gone). In the last case, Watch lists
// again and yields the differences, so it can skip versions between the last and the
// present one.
//
// Watch yields one error and stops if the first list fails, or if the server denies the
// watch. It retries other errors, and reports them to [Options.OnWarning]. If ctx ends, it
// stops without an error.
//
// The state of a series is that at the time of the change. If [Query.At] is set, it is the one
// at that time, and time alone changes nothing. Watch keeps the name and the version of each
// Event, and the encoded Event if it matches, or if time alone can change that.
func (r *Reader) Watch(ctx context.Context, q Query) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		requests, err := q.plan(false)
		if err != nil {
			yield(Change{}, err)
			return
		}
		w := newWatcher(r, &q, func(c Change) bool { return yield(c, nil) })
		w.undecided = make(map[types.NamespacedName]*known)
		if err := w.run(ctx, requests); !errors.Is(err, errStopped) && ctx.Err() == nil {
			yield(Change{}, err)
		}
	}
}

// watcher carries out one watch. Only the goroutine of the caller uses it, except for
// lists.
type watcher struct {
	reader *Reader
	query  *Query
	lister lister // of the first lists
	known  map[types.NamespacedName]*known
	yield  func(Change) bool
	lists  atomic.Int64           // numbers the lists
	due    schedule.Queue[*known] // when time alone changes something, after epoch
	spans  spans
	// undecided are the Events of the first lists whose states depend on others.
	undecided map[types.NamespacedName]*known
}

// known is an Event that the watch knows about.
type known struct {
	request int   // index of the request that returned it
	list    int64 // the latest list that contained it; 0 if only the watch did
	uid     types.UID
	version string
	matched bool
	state   series.State // when it was judged last
	index   int32        // in due, plus one
	item    packed       // if matched, or if it is in due
}

func newWatcher(r *Reader, q *Query, yield func(Change) bool) *watcher {
	return &watcher{
		reader: r, query: q, known: make(map[types.NamespacedName]*known), spans: make(spans), yield: yield,
		due: schedule.NewQueue(func(k *known) *int32 { return &k.index }),
	}
}

func (w *watcher) run(ctx context.Context, requests []request) error {
	latest := make(map[int]int64) // list of each request
	w.lister = lister{reader: w.reader, query: w.query, progress: w.reader.opts.OnProgress}
	w.lister.begin = func() { latest[len(w.lister.done)] = w.lists.Add(1) }
	err := w.lister.run(ctx, requests, func(item *Item) bool {
		request := len(w.lister.done)
		return w.put(ctx, request, latest[request], item)
	})
	if err != nil {
		return err
	}
	for request, list := range latest {
		if !w.complete(request, list) {
			return errStopped
		}
	}
	if err := w.decide(ctx); err != nil {
		return err
	}
	if !w.yield(Change{Type: Synced}) {
		return errStopped
	}

	ctx, cancel := context.WithCancel(ctx)
	notices := make(chan notice)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer cancel()
	for i, l := range w.lister.done { // a follower can change its copy
		f := &follower{reader: w.reader, query: w.query, lists: &w.lists, request: i, listed: &l, group: l.group, notices: notices}
		followers.Go(func() { f.run(ctx) })
	}
	return w.loop(ctx, notices)
}

// longestWait is how long a watch waits at most before it looks at its deadlines again.
const longestWait = 24 * time.Hour

// loop handles what happens until ctx ends.
func (w *watcher) loop(ctx context.Context, notices <-chan notice) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Stop()
		if w.due.Len() > 0 {
			timer.Reset(min(w.untilDue(), longestWait) + 1) // a series is stale after that time
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case n := <-notices:
			if err := w.handle(ctx, &n); err != nil {
				return err
			}
		case <-timer.C:
			if !w.expire(ctx) {
				return errStopped
			}
		}
	}
}

// epoch is where the times of the deadlines begin.
var epoch = time.Unix(0, 0)

// untilDue returns how long it is until time alone changes something. There must be a deadline.
func (w *watcher) untilDue() time.Duration {
	return w.due.At(w.due.First()) - w.reader.opts.Clock.Now().Sub(epoch)
}

// expire yields the series that time has changed.
func (w *watcher) expire(ctx context.Context) bool {
	for w.due.Len() > 0 && w.untilDue() < 0 {
		k := w.due.First()
		item := w.now(k)
		w.settle(ctx, item)
		var both ChangeType
		switch item.State {
		case k.state: // the query waited for that time
		case series.Ongoing, series.Singleton:
			both = Modified
		default:
			both = Stale
		}
		w.plan(k, item)
		if !w.judge(k, item, both) {
			return false
		}
	}
	return true
}

// plan decides when time alone changes something about an item.
func (w *watcher) plan(k *known, item *Item) {
	switch due := w.query.changesAt(item); {
	case !due.IsZero():
		w.due.Put(k, due.Sub(epoch))
	case k.index > 0:
		w.due.Remove(k)
	}
}

// judge yields a series if it matches or matched, with a type if both.
func (w *watcher) judge(k *known, item *Item, both ChangeType) bool {
	change := Change{Type: both, Item: item}
	matches := w.query.Matches(item)
	switch {
	case matches && !k.matched:
		change.Type = Added
	case !matches && k.matched:
		change.Type = Left
	case !matches:
		change.Type = ""
	}
	k.matched, k.state, k.item = matches, item.State, packed{}
	if matches || k.index > 0 {
		k.item = pack(item)
	}
	return change.Type == "" || w.yield(change)
}

// handle carries out what a follower says.
func (w *watcher) handle(ctx context.Context, n *notice) error {
	goOn := true
	switch {
	case n.err != nil && n.fatal:
		return n.err
	case n.err != nil:
		w.reader.opts.OnWarning(n.err)
	case n.event == nil:
		goOn = w.complete(n.request, n.list)
	default:
		item := w.reader.item(w.query, n.event)
		if !w.lister.done[n.request].covers(item) || !w.lister.belongs(item, n.request) {
			break
		}
		if n.gone {
			goOn = w.remove(item)
		} else {
			goOn = w.put(ctx, n.request, n.list, item)
		}
	}
	if !goOn {
		return errStopped
	}
	return nil
}

// decide yields the series of the first lists whose states depend on other Events.
func (w *watcher) decide(ctx context.Context) error {
	undecided := w.undecided
	w.undecided = nil
	names := slices.SortedFunc(maps.Keys(undecided), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	objects := sets.New[Object]()
	for _, name := range names {
		objects.Insert(w.now(undecided[name]).subject())
	}
	if err := w.reader.complete(ctx, w.query, w.spans, objects); err != nil {
		return err
	}
	for _, name := range names {
		k := undecided[name]
		item := w.now(k)
		w.spans.settle(item)
		w.plan(k, item)
		if !w.judge(k, item, Modified) {
			return errStopped
		}
	}
	return nil
}

// settle sets the state of a series whose state depends on other Events. A series that is Ongoing
// needs no list: the watch has just received it, so what began later is yet to come.
func (w *watcher) settle(ctx context.Context, item *Item) {
	if item.State != series.Quiet || !w.query.undecided(item) {
		w.spans.settle(item)
		return
	}
	if err := w.reader.complete(ctx, w.query, w.spans, sets.New(item.subject())); err != nil {
		w.reader.opts.OnWarning(err)
		item.setContended(item.At) // nobody knows
		return
	}
	w.spans.settle(item)
}

// now returns a known series as it is on its own at this time.
func (w *watcher) now(k *known) *Item {
	p := k.item
	p.at, p.because = w.reader.at(w.query), time.Time{}
	return p.unpack()
}

// put yields what is new about an Event that exists.
func (w *watcher) put(ctx context.Context, request int, list int64, item *Item) bool {
	name := types.NamespacedName{Namespace: item.Namespace, Name: item.Name}
	k := w.known[name]
	if k != nil && k.uid != item.Event.UID {
		if !w.forget(name) { // deleted and created again between two lists
			return false
		}
		k = nil
	}
	if k == nil {
		k = &known{request: request, uid: item.Event.UID}
		w.known[name] = k
	} else if k.version == item.Version {
		k.list = max(k.list, list)
		return true
	}
	k.list, k.version = max(k.list, list), item.Version
	isNew := w.spans.add(item)
	if delete(w.undecided, name); w.undecided == nil {
		if isNew && !w.follow(item) {
			return false
		}
		w.settle(ctx, item)
	} else if w.query.undecided(item) {
		w.undecided[name], k.item = k, pack(item)
		return true
	}
	w.plan(k, item)
	return w.judge(k, item, Modified)
}

// follow yields the series that are no longer ongoing because an Event is new.
func (w *watcher) follow(item *Item) bool {
	for _, s := range slices.Clone(w.spans[subjectOf(item)]) {
		name := types.NamespacedName{Namespace: item.Namespace, Name: s.name}
		k := w.known[name]
		if k == nil || k.state != series.Ongoing || k.item.event == nil {
			continue
		}
		other := w.now(k)
		if w.spans.settle(other); other.Followed.IsZero() {
			continue
		}
		w.plan(k, other)
		if !w.judge(k, other, Stale) {
			return false
		}
	}
	return true
}

// remove yields that an Event is gone.
func (w *watcher) remove(item *Item) bool {
	name := types.NamespacedName{Namespace: item.Namespace, Name: item.Name}
	k := w.known[name]
	if k == nil || k.uid != item.Event.UID {
		return true
	}
	delete(w.known, name)
	delete(w.undecided, name)
	if k.index > 0 {
		w.due.Remove(k)
	}
	w.spans.remove(item)
	return !k.matched || w.yield(Change{Type: Deleted, Item: item})
}

// forget yields that a known Event is gone.
func (w *watcher) forget(name types.NamespacedName) bool {
	k := w.known[name]
	if k.item.event == nil {
		delete(w.known, name)
		return true
	}
	return w.remove(w.now(k))
}

// complete yields that the Events that a list of a request does not contain are gone.
func (w *watcher) complete(request int, list int64) bool {
	var gone []types.NamespacedName
	for name, k := range w.known {
		if k.request == request && k.list != list {
			gone = append(gone, name)
		}
	}
	slices.SortFunc(gone, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range gone {
		if !w.forget(name) {
			return false
		}
	}
	return true
}
