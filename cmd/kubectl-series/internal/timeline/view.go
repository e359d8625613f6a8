package timeline

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/series"
)

//go:embed timeline.html.tmpl timeline.svg.tmpl
var files embed.FS

var templates = template.Must(template.ParseFS(files, "*.tmpl"))

// WriteHTML writes the timeline as a page.
func (t *Timeline) WriteHTML(w io.Writer) error {
	return templates.ExecuteTemplate(w, "timeline.html.tmpl", t.view())
}

// view is a timeline as text for the templates. All strings are clean.
type view struct {
	Kind, Namespace, Name string
	Title, Span, Summary  string
	Written, WrittenAt    string
	Zone, Dependents      string
	Paths, Remarks        []string
	Next                  []Hop
	Ticks                 []viewTick
	Now                   bool   // the axis ends now
	Gap                   string // for how long the object has been quiet, if the axis breaks
	GapStyle              template.CSS
	Bars                  []viewRow
	Facts                 []fact
}

type fact struct{ Name, Value string }

type viewTick struct {
	Label string
	Style template.CSS
	Class string
	at    float64
}

// viewRow is a series or a group of series.
type viewRow struct {
	Page                                                    *view
	Reason, Type, State, Object, Related, Controller, Event string
	First, Last, FirstAt, LastAt, Lasted, Ago               string
	Count, Rate                                             string
	Notes                                                   []string // the lines of the latest note
	FirstNote                                               string   // on one line, if it differs
	Class                                                   string   // of the bar
	Label                                                   string   // what the bar shows, in words
	Style                                                   template.CSS
	Timed                                                   bool      // the Event has a time
	Drawn                                                   bool      // it is on the axis
	Many                                                    string    // how many series of a group of several are ongoing
	Rows                                                    []viewRow // of the group; empty for a series
	bar                                                     bar
}

func (t *Timeline) view() *view {
	v := &view{
		Kind: text.Clean(t.Kind), Namespace: text.Clean(t.Namespace), Name: text.Clean(t.Name),
		Title: t.title(), Span: t.span(), Summary: t.summary(), Next: t.Next,
		Written: t.Now.Format(dateTimeZone), WrittenAt: t.Now.Format(time.RFC3339), Zone: t.Now.Format("MST"), Dependents: text.Clean(t.Dependents),
		Now: t.endsNow(), Ticks: t.viewTicks(),
	}
	if t.Break > 0 {
		v.Gap, v.GapStyle = text.Age(t.Last, t.Now), left(t.Break)
	}
	for _, path := range t.Paths {
		v.Paths = append(v.Paths, text.Clean(path))
	}
	for _, remark := range t.Remarks {
		v.Remarks = append(v.Remarks, text.Clean(remark))
	}
	v.Facts = []fact{
		{"Series", text.Count(int64(len(t.Rows)))},
		{"Ongoing", text.Count(int64(t.Ongoing))},
		{"Warnings", text.Count(int64(t.Warnings))},
		{"Occurrences", text.AtLeast(text.Count(t.Occurrences), t.LowerBound)},
	}
	if !t.Last.IsZero() {
		v.Facts = append(v.Facts, fact{"Latest", text.Ago(t.Last, t.Now)})
	}
	for i := range t.Groups {
		v.Bars = append(v.Bars, t.viewGroup(v, &t.Groups[i]))
	}
	if len(t.Groups) == 0 {
		for i := range t.Rows {
			v.Bars = append(v.Bars, t.viewRow(v, &t.Rows[i]))
		}
	}
	return v
}

// Widths of the plot in pixels on a usual page, in the image, and on a phone, and of a character
// in a label.
const (
	wideScale   = svgEnd - svgChart
	narrowScale = 318
	labelWidth  = 7.5
)

// viewTicks returns the ticks with the classes that keep labels apart.
func (t *Timeline) viewTicks() []viewTick {
	wide, narrow := t.labels(wideScale), t.labels(narrowScale)
	var ticks []viewTick
	for i, tick := range t.Ticks {
		class := strings.TrimSpace("tick " + tickEdge(tick))
		switch {
		case !wide[i]:
			class += " unlabeled"
		case !narrow[i]:
			class += " wide" // a narrow page has no room for it
		}
		ticks = append(ticks, viewTick{Label: tick.Label, Class: class, Style: left(tick.At), at: tick.At})
	}
	return ticks
}

// labels reports which ticks have labels on an axis of a width: all of them, or each second one, and
// so on, so that there is room. "now" at the end has room in any case.
func (t *Timeline) labels(width float64) []bool {
	shown := make([]bool, len(t.Ticks))
	for stride := 1; stride <= len(t.Ticks); stride++ {
		for i := range t.Ticks {
			shown[i] = i%stride == 0
		}
		if t.fit(shown, width) {
			return shown
		}
	}
	return make([]bool, len(t.Ticks))
}

// fit reports whether labels that are shown do not collide on an axis of a width. It hides those that
// collide with "now".
func (t *Timeline) fit(shown []bool, width float64) bool {
	const apart = 10
	limit := width
	if t.endsNow() {
		limit -= labelWidth*float64(len("now")) + apart
	}
	taken := -float64(apart)
	for i, tick := range t.Ticks {
		label := labelWidth * float64(len(tick.Label))
		from := tick.At*width - label/2
		switch tickEdge(tick) {
		case "first":
			from = tick.At * width
		case "last":
			from = tick.At*width - label
		}
		shown[i] = shown[i] && from+label <= limit
		if shown[i] && from < taken+apart {
			return false
		}
		if shown[i] {
			taken = from + label
		}
	}
	return true
}

// tickEdge returns "first" or "last" if a centered label would leave a narrow axis.
func tickEdge(tick Tick) string {
	switch half := labelWidth * float64(len(tick.Label)) / 2; {
	case tick.At*narrowScale < half:
		return "first"
	case (1-tick.At)*narrowScale < half:
		return "last"
	default:
		return ""
	}
}

func left(at float64) template.CSS { return template.CSS(fmt.Sprintf("left:%.2f%%", 100*at)) }

// newViewRow returns what series and groups have in common.
func (t *Timeline) newViewRow(v *view, first, last time.Time, at *bar) viewRow {
	from, to := t.times(first, last)
	row := viewRow{
		Page: v, State: at.state.String(), First: from, Last: to,
		FirstAt: first.UTC().Format(time.RFC3339Nano), LastAt: last.UTC().Format(time.RFC3339Nano),
		Ago: text.Ago(last, t.Now), Timed: !first.IsZero(), Drawn: at.Drawn, bar: *at,
	}
	if last.After(first) {
		row.Lasted = text.Duration(last.Sub(first))
	}
	row.Class = "bar " + strings.ToLower(at.state.String()) + " normal"
	if at.warning {
		row.Class = "bar " + strings.ToLower(at.state.String()) + " warning"
	}
	row.Style = template.CSS(fmt.Sprintf("left:%.2f%%;width:%.2f%%", 100*at.Start, 100*(at.End-at.Start)))
	if at.state == series.Ongoing {
		row.Style += template.CSS(fmt.Sprintf(";--known:%.2f%%", 100*(at.Known-at.Start)/max(at.End-at.Start, 1e-9)))
	}
	if at.partly {
		row.Class += " partly"
	}
	if at.state == series.Singleton && at.Start == at.End {
		row.Style = left(at.Start)
	}
	return row
}

func (t *Timeline) viewRow(v *view, r *Row) viewRow {
	row := t.newViewRow(v, r.First, r.Last, &r.bar)
	row.Reason, row.Type = cmp.Or(text.Clean(r.Event.Reason), text.None), text.Clean(r.Event.Type)
	row.Object, row.Related, row.Controller = r.object(t.Namespace), r.related(t.Namespace), text.Clean(r.Controller())
	row.Event = text.Clean(r.Event.Namespace + "/" + r.Event.Name)
	row.Count, row.Notes = text.AtLeast(text.Count(int64(r.Count)), r.LowerBound()), text.Lines(cmp.Or(r.LastNote, r.Note))
	if rate := r.Rate(); rate > 0 {
		row.Rate = text.Rate(rate)
	}
	if note := text.Clean(r.Note); r.LastNote != "" && note != text.Clean(r.LastNote) {
		row.FirstNote = note
	}
	row.Label = row.label()
	return row
}

// viewGroup returns a group.
func (t *Timeline) viewGroup(v *view, g *GroupRow) viewRow {
	var rows []viewRow
	for i := range g.Rows {
		rows = append(rows, t.viewRow(v, &g.Rows[i]))
	}
	if len(rows) == 1 {
		row := rows[0]
		row.Rows, row.Notes, row.FirstNote = rows, nil, ""
		return row
	}
	row := t.newViewRow(v, g.First, g.Last, &g.bar)
	row.Reason, row.Type, row.Object = text.Clean(g.Reason), text.Clean(g.Type), g.What()
	row.Count, row.Many = text.AtLeast(text.Count(g.Occurrences), g.LowerBound), fmt.Sprintf("%s of %s series ongoing", text.Count(int64(g.Ongoing)), text.Count(int64(len(g.Rows))))
	if rate := g.Rate(); rate > 0 {
		row.Rate = text.Rate(rate)
	}
	row.Rows, row.Label = rows, row.label()
	return row
}

// label describes the bar for those who cannot see it.
func (r *viewRow) label() string {
	switch {
	case !r.Timed:
		return "no time"
	case !r.Drawn:
		return "in the future"
	case r.State == series.Singleton.String() && r.Many == "":
		return "once, at " + r.First
	default:
		return fmt.Sprintf("%s, %s occurrences from %s to %s", strings.ToLower(r.State), r.Count, r.First, r.Last)
	}
}
