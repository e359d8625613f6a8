package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditPolicy logs who did what with Events, but not their content.
const auditPolicy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived"],"rules":[
	{"level":"Metadata","resources":[{"group":"","resources":["events"]},{"group":"events.k8s.io","resources":["events"]}]},
	{"level":"None"}]}`

// schedulerAgent begins the user agent of the scheduler. The API server creates Events,
// too.
const schedulerAgent = "kube-scheduler/"

// countRequests counts the requests of the scheduler in an audit log: those about Events
// of the stuck Pods or about no Event in particular, such as lists, by verb; those of them
// that failed, by verb and status code; and those about Events of other Pods.
func countRequests(log io.Reader) (byVerb, failed map[string]int, others int, err error) {
	byVerb, failed = make(map[string]int), make(map[string]int)
	for decoder := json.NewDecoder(log); ; {
		var entry auditv1.Event
		switch err := decoder.Decode(&entry); {
		case errors.Is(err, io.EOF):
			return byVerb, failed, others, nil
		case err != nil:
			return nil, nil, 0, fmt.Errorf("scheduler: audit log: %w", err)
		case !strings.HasPrefix(entry.UserAgent, schedulerAgent):
			continue
		case entry.ObjectRef != nil && strings.HasPrefix(entry.ObjectRef.Name, workPrefix):
			others++
			continue
		}
		byVerb[entry.Verb]++
		var code int32 // of a request that the server aborted
		if entry.ResponseStatus != nil {
			code = entry.ResponseStatus.Code
		}
		if code < http.StatusOK || code >= http.StatusBadRequest {
			failed[fmt.Sprintf("%s %d", entry.Verb, code)]++
		}
	}
}
