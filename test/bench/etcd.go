package bench

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// serverUsage is what the process of kube-apiserver and etcd has used since its start.
type serverUsage struct {
	cpu      time.Duration // user and system time
	putBytes float64       // of the keys that etcd wrote, and their values
}

func (u serverUsage) minus(v serverUsage) serverUsage {
	return serverUsage{u.cpu - v.cpu, u.putBytes - v.putBytes}
}

func (u serverUsage) times(f float64) serverUsage {
	return serverUsage{time.Duration(float64(u.cpu) * f), u.putBytes * f}
}

// etcd is the address of an etcd in the process of the API server.
type etcd string

// used returns the usage. It panics if the server has no such metric, since a renamed one
// must not count as zero.
func (e etcd) used() serverUsage {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(e.send(http.MethodGet, "/metrics", nil)))
	must(err)
	sum := func(name string) (sum float64) {
		family, ok := families[name]
		if !ok {
			panic(fmt.Sprintf("bench: the server has no metric %q", name))
		}
		for _, m := range family.GetMetric() {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
		return sum
	}
	return serverUsage{
		cpu:      time.Duration(sum("process_cpu_seconds_total") * float64(time.Second)),
		putBytes: sum("etcd_debugging_mvcc_total_put_size_in_bytes"),
	}
}

// The API server stores Events below this key, and reads them from etcd, without a
// cache.
const (
	firstEventKey = "/registry/events/"
	lastEventKey  = "/registry/events0" // the first key after them
)

// clear removes all Events, and everything that remains of them in the database.
func (e etcd) clear() {
	// etcd limits the time of a request.
	e.eachPage(true, func(first, last string, _ []keyValue) {
		e.call("kv/deleterange", map[string]any{"key": encode(first), "range_end": encode(last + "\x00")}, nil)
	})
	// Compaction keeps what the latest write deleted.
	e.call("kv/put", map[string]any{"key": encode("cleared")}, nil)
	e.compact()
}

// compact removes earlier versions of all keys, and the free space in the database.
func (e etcd) compact() {
	var now struct {
		Header struct{ Revision string } `json:"header"`
	}
	e.call("kv/range", map[string]any{"key": encode("/"), "limit": 1}, &now)
	e.call("kv/compaction", map[string]any{"physical": true, "revision": now.Header.Revision}, nil)
	e.call("maintenance/defragment", map[string]any{}, nil)
}

// stored returns the number of Events and the bytes of their keys and values.
func (e etcd) stored() (events int, size int64) {
	e.eachPage(false, func(_, _ string, page []keyValue) {
		for _, kv := range page {
			events++
			size += int64(len(kv.Key) + len(kv.Value))
		}
	})
	return events, size
}

type keyValue struct{ Key, Value []byte }

// eachPage calls f for pages of Events with their first and last key.
func (e etcd) eachPage(keysOnly bool, f func(first, last string, page []keyValue)) {
	for next, more := firstEventKey, true; more; {
		var page struct {
			More bool       `json:"more"`
			KVs  []keyValue `json:"kvs"`
		}
		e.call("kv/range", map[string]any{"key": encode(next), "range_end": encode(lastEventKey), "limit": 1000, "keys_only": keysOnly}, &page)
		if len(page.KVs) == 0 {
			return
		}
		last := string(page.KVs[len(page.KVs)-1].Key)
		f(string(page.KVs[0].Key), last, page.KVs)
		next, more = last+"\x00", page.More
	}
}

// call calls etcd's JSON API. A nil response is discarded.
func (e etcd) call(method string, request, response any) {
	body, err := json.Marshal(request)
	must(err)
	body = e.send(http.MethodPost, "/v3/"+method, body)
	if response != nil {
		must(json.Unmarshal(body, response))
	}
}

// send sends a request and returns the body of the response.
func (e etcd) send(method, path string, body []byte) []byte {
	request, err := http.NewRequestWithContext(context.Background(), method, string(e)+path, bytes.NewReader(body))
	must(err)
	response, err := http.DefaultClient.Do(request)
	must(err)
	body, err = io.ReadAll(response.Body)
	must(errors.Join(err, response.Body.Close()))
	if response.StatusCode != http.StatusOK {
		panic(fmt.Sprintf("bench: etcd: %s %s: %s: %s", method, path, response.Status, body))
	}
	return body
}

func encode(key string) string { return base64.StdEncoding.EncodeToString([]byte(key)) }

func etcdAt(port int) etcd { return etcd("http://127.0.0.1:" + strconv.Itoa(port)) }
