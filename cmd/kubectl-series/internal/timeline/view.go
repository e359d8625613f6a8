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
	Remarks               []string
	Ticks                 []viewTick
	Now                   bool // the axis ends now
	Rows                  []viewRow
	Facts                 []fact
}

type fact struct{ Name, Value string }

type viewTick struct {
	Label string
	Style template.CSS
	Class string
	at    float64
}

type viewRow struct {
	Reason, Type, State, Object, Related, Controller, Event string
	First, Last, FirstAt, LastAt, Lasted                    string
	Count, Rate                                             string
	Notes                                                   []string // the lines of the latest note
	FirstNote                                               string   // on one line, if it differs
	Class                                                   string   // of the bar
	Label                                                   string   // what the bar shows, in words
	Style                                                   template.CSS
	Drawn                                                   bool // the Event has a time
	start, end                                              float64
}

func (t *Timeline) view() *view {
	v := &view{
		Kind: text.Clean(t.Kind), Namespace: text.Clean(t.Namespace), Name: text.Clean(t.Name),
		Title: t.title(), Span: t.span(), Summary: t.summary(),
		Written: t.Now.Format(time.DateTime) + " UTC", WrittenAt: t.Now.Format(time.RFC3339),
		Now: !t.To.After(t.Now) && !t.To.Before(t.Now),
	}
	for _, remark := range t.Remarks {
		v.Remarks = append(v.Remarks, text.Clean(remark))
	}
	v.Facts = []fact{
		{"Series", text.Count(int64(len(t.Rows)))},
		{"Ongoing", text.Count(int64(t.Ongoing))},
		{"Warnings", text.Count(int64(t.Warnings))},
		{"Occurrences", text.Count(t.Occurrences)},
	}
	for i, tick := range t.Ticks {
		class := "tick"
		switch {
		case v.Now && tick.At > 0.9:
			class += " unlabeled" // "now" is there
		case tick.At > 0.92:
			class += " last"
		case tick.At < 0.05:
			class += " first"
		}
		if i%2 == 1 && len(t.Ticks) > 4 {
			class += " odd" // a narrow page has no room for it
		}
		if v.Now && tick.At > 0.78 {
			class += " late" // on a narrow page, "now" is there
		}
		v.Ticks = append(v.Ticks, viewTick{Label: tick.Label, Class: class, Style: left(tick.At), at: tick.At})
	}
	for i := range t.Rows {
		v.Rows = append(v.Rows, t.viewRow(&t.Rows[i]))
	}
	return v
}

func left(at float64) template.CSS { return template.CSS(fmt.Sprintf("left:%.2f%%", 100*at)) }

func (t *Timeline) viewRow(r *Row) viewRow {
	first, last := t.times(r)
	row := viewRow{
		Reason: cmp.Or(text.Clean(r.Event.Reason), text.None), Type: text.Clean(r.Event.Type), State: r.State.String(),
		Object: r.object(t.Namespace), Related: r.related(t.Namespace), Controller: text.Clean(r.Controller()),
		Event: text.Clean(r.Event.Namespace + "/" + r.Event.Name),
		First: first, Last: last, FirstAt: r.First.UTC().Format(time.RFC3339Nano), LastAt: r.Last.UTC().Format(time.RFC3339Nano),
		Count: text.Count(int64(r.Count)), Notes: text.Lines(cmp.Or(r.LastNote, r.Note)),
		Drawn: !r.First.IsZero(), start: r.Start, end: r.End,
	}
	if rate := r.Rate(); rate > 0 {
		row.Rate = text.Rate(rate)
	}
	if r.Last.After(r.First) {
		row.Lasted = text.Duration(r.Last.Sub(r.First))
	}
	if note := text.Clean(r.Note); r.LastNote != "" && note != text.Clean(r.LastNote) {
		row.FirstNote = note
	}

	class := []string{"bar", strings.ToLower(r.State.String())}
	if r.Warning() {
		class = append(class, "warning")
	} else {
		class = append(class, "normal")
	}
	row.Class = strings.Join(class, " ")
	row.Style = template.CSS(fmt.Sprintf("left:%.2f%%;width:%.2f%%", 100*r.Start, 100*(r.End-r.Start)))
	if r.State == series.Singleton {
		row.Style = left(r.Start)
	}
	row.Label = row.label()
	return row
}

// label describes the bar for those who cannot see it.
func (r *viewRow) label() string {
	switch {
	case !r.Drawn:
		return "no time"
	case r.State == series.Singleton.String():
		return "once, at " + r.First
	default:
		return fmt.Sprintf("%s, %s occurrences from %s to %s", strings.ToLower(r.State), r.Count, r.First, r.Last)
	}
}
