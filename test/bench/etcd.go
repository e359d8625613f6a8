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

// ServerUsage is what the process of kube-apiserver and etcd has used since its start.
type ServerUsage struct {
	CPU      time.Duration `json:"cpu"`      // user and system time
	Puts     float64       `json:"puts"`     // keys that etcd wrote
	PutBytes float64       `json:"putBytes"` // of these keys and their values
	WAL      float64       `json:"wal"`      // bytes that etcd wrote to its write-ahead log
	Database float64       `json:"database"` // bytes of etcd's database in use
}

func (u ServerUsage) minus(v ServerUsage) ServerUsage {
	return ServerUsage{u.CPU - v.CPU, u.Puts - v.Puts, u.PutBytes - v.PutBytes, u.WAL - v.WAL, u.Database - v.Database}
}

// times returns the usage in the same proportion, except for the database.
func (u ServerUsage) times(f float64) ServerUsage {
	return ServerUsage{time.Duration(float64(u.CPU) * f), u.Puts * f, u.PutBytes * f, u.WAL * f, 0}
}

// etcd is the address of an etcd in the process of the API server.
type etcd string

// used returns the usage.
func (e etcd) used() ServerUsage {
	m, err := parseMetrics(bytes.NewReader(e.send(http.MethodGet, "/metrics", nil)))
	must(err)
	return ServerUsage{
		CPU:      m.cpu(),
		Puts:     m.of("etcd_mvcc_put_total"),
		PutBytes: m.of("etcd_debugging_mvcc_total_put_size_in_bytes"),
		WAL:      m.of("etcd_disk_wal_write_bytes_total"),
		Database: m.of("etcd_mvcc_db_total_size_in_use_in_bytes"),
	}
}

// cost returns the CPU time of the server for each of many equal calls, which get the
// numbers from 0 on. It calls until they have used enough, because what else the server
// does, and the question for its CPU time, use some, too.
func (e etcd) cost(enough time.Duration, call func(i int)) time.Duration {
	i := 0
	for calls := 1; ; calls *= 2 {
		before := e.used().CPU
		for range calls {
			call(i)
			i++
		}
		if used := e.used().CPU - before; used >= enough {
			return used / time.Duration(calls)
		}
	}
}

// serverMetrics are the sums of the metrics of a server by their names.
type serverMetrics map[string]float64

func parseMetrics(from io.Reader) (serverMetrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(from)
	sums := make(serverMetrics)
	for name, family := range families {
		for _, m := range family.GetMetric() {
			sums[name] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sums, err
}

// of returns a metric. It panics if there is none, since a renamed metric must not count
// as zero.
func (m serverMetrics) of(name string) float64 {
	sum, ok := m[name]
	if !ok {
		panic(fmt.Sprintf("bench: the server has no metric %q", name))
	}
	return sum
}

// cpu returns the CPU time of the process.
func (m serverMetrics) cpu() time.Duration {
	return time.Duration(m.of("process_cpu_seconds_total") * float64(time.Second))
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

// put writes a value under n keys.
func (e etcd) put(n int, key func(i int) string, value []byte) {
	const atOnce = 100 // etcd permits 128
	for first := 0; first < n; first += atOnce {
		var puts []map[string]any
		for i := first; i < min(first+atOnce, n); i++ {
			puts = append(puts, map[string]any{"requestPut": map[string]any{"key": encode(key(i)), "value": base64.StdEncoding.EncodeToString(value)}})
		}
		e.call("kv/txn", map[string]any{"success": puts}, nil)
	}
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
