package consumers

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/k8seventsreceiver"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/k8sobjectsreceiver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// record is what a receiver reports about an Event at one time.
type record struct{ event, text string }

func TestK8sEvents(t *testing.T) {
	rows := [][]string{{"Event", "`EventSinkImpl`", "`CoreSink`"}, {singleton}, {ongoing}, {finished}, {older}}
	for _, sinkName := range sinkNames {
		settings := func(namespace string) map[string]any { return map[string]any{"namespaces": []any{namespace}} }
		received := receive(t, sinkName, k8seventsreceiver.NewFactory(), settings, func(log plog.LogRecord) record {
			name, _ := log.Attributes().Get("k8s.event.name")
			count := "–"
			if value, ok := log.Attributes().Get("k8s.event.count"); ok {
				count = strconv.FormatInt(value.Int(), 10)
			}
			return record{name.Str(), log.Timestamp().AsTime().UTC().Format(time.RFC3339) + " " + count}
		})
		for i, row := range rows[1:] {
			rows[i+1] = append(row, received[row[0]])
		}
	}
	requireOnPage(t, "k8s_events", table(rows...))
}

func TestK8sObjects(t *testing.T) {
	data, err := os.ReadFile("testdata/collector.yaml")
	require.NoError(t, err)
	var collector struct {
		Receivers map[string]struct {
			Objects []map[string]any `json:"objects"`
		} `json:"receivers"`
	}
	require.NoError(t, yaml.Unmarshal(data, &collector))

	rows := [][]string{{"Event", "`k8sobjects`", "`k8sobjects/ongoing`"}, {singleton}, {ongoing}, {finished}, {older}}
	for _, id := range []string{"k8sobjects", "k8sobjects/ongoing"} {
		var first map[string]string
		for _, sinkName := range sinkNames {
			for _, group := range []string{"events.k8s.io", ""} {
				settings := func(namespace string) map[string]any {
					object := collector.Receivers[id].Objects[0]
					object["group"], object["namespaces"] = group, []any{namespace}
					return map[string]any{"objects": []any{object}}
				}
				received := receive(t, sinkName, k8sobjectsreceiver.NewFactory(), settings, func(log plog.LogRecord) record {
					body := log.Body().Map().AsRaw()
					event := body["object"].(map[string]any)
					metadata := event["metadata"].(map[string]any)
					text := body["type"].(string)
					if labels, ok := metadata["labels"].(map[string]any); ok && labels[series.LabelState] != nil {
						text += fmt.Sprintf(" %v %v", event["series"].(map[string]any)["count"], labels[series.LabelState])
					}
					return record{metadata["name"].(string), text}
				})
				if first == nil {
					first = received
				}
				assert.Equal(t, first, received, "%s shows the Events of both sinks and both groups alike", id)
			}
		}
		for i, row := range rows[1:] {
			rows[i+1] = append(row, first[row[0]])
		}
	}
	requireOnPage(t, "k8sobjects", table(rows...))
}

// receive runs a receiver while a sink writes Events, and returns what it reports about
// each kind of Event. parse reads a record. It formats times as RFC 3339, which receive
// replaces by "first" or "latest".
func receive(t *testing.T, sinkName string, factory receiver.Factory, settings func(namespace string) map[string]any, parse func(plog.LogRecord) record) map[string]string {
	t.Helper()
	t.Setenv(clientcmd.RecommendedConfigPathEnvVar, apiserver.Kubeconfig(t))
	sink, namespace := newSink(t, sinkName), apiserver.Namespace(t)
	pod := series.Reference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "web-0"}
	old := newSeries(namespace, older, pod, time.Now())
	create(t, sink, old)

	config := factory.CreateDefaultConfig()
	source := confmap.NewFromStringMap(map[string]any{"auth_type": "kubeConfig"})
	require.NoError(t, source.Merge(confmap.NewFromStringMap(settings(namespace))))
	require.NoError(t, source.Unmarshal(config))
	if validator, ok := config.(interface{ Validate() error }); ok {
		require.NoError(t, validator.Validate())
	}
	logs := new(consumertest.LogsSink)
	program, err := factory.CreateLogs(t.Context(), receivertest.NewNopSettings(), config, logs)
	require.NoError(t, err)
	require.NoError(t, program.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, program.Shutdown(t.Context())) }()

	// The receiver watches once it has reported a mark. Each mark becomes an Ongoing
	// series, so that a selector by state finds it as well.
	marks := 0
	mark := func() *series.Series {
		marks++
		s := newSeries(namespace, fmt.Sprintf("mark-%d", marks), pod, time.Now())
		create(t, sink, s)
		patch(t, sink, s, series.Ongoing, someCount, time.Now())
		return s
	}
	records := func() (all []record) {
		for _, batch := range logs.AllLogs() { // of one record each
			for i := range batch.ResourceLogs().Len() {
				all = append(all, parse(batch.ResourceLogs().At(i).ScopeLogs().At(0).LogRecords().At(0)))
			}
		}
		return all
	}
	await := func(done func() bool) {
		t.Helper()
		require.NoError(t, wait.PollUntilContextTimeout(t.Context(), apiserver.PollInterval, timeout, true,
			func(context.Context) (bool, error) { return done(), nil }))
	}
	await(func() bool {
		mark()
		return len(records()) > 0
	})

	// All occurrences are after the start of the receiver.
	start := time.Now().Truncate(time.Second).Add(slices.Max(ages[ongoing]) + time.Second)
	at := func(age time.Duration) time.Time { return start.Add(-age) }
	writeSeries(t, sink, namespace, pod, at)
	patch(t, sink, old, series.Ongoing, finalCount, at(slices.Min(ages[ongoing])))
	last := mark()
	await(func() bool {
		return slices.ContainsFunc(records(), func(r record) bool { return r.event == last.Name })
	})

	received := map[string][]string{}
	for _, r := range records() {
		_, kind, _ := strings.Cut(r.event, ".")
		received[kind] = append(received[kind], nameTimes(r.text, kind, at))
	}
	text := map[string]string{}
	for _, kind := range []string{singleton, ongoing, finished, older} {
		text[kind] = "none"
		if len(received[kind]) > 0 {
			text[kind] = strings.Join(received[kind], "; ")
		}
	}
	return text
}

// nameTimes replaces the time in text by what it is for the kind of Event.
func nameTimes(text, kind string, at func(age time.Duration) time.Time) string {
	name := "first"
	for _, age := range ages[kind] {
		text = strings.ReplaceAll(text, at(age).UTC().Format(time.RFC3339), name)
		name = "latest"
	}
	return text
}
