package integration

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// Limits of the API server, in bytes.
const (
	maxNote     = 1024
	maxReason   = 128
	maxAction   = 128
	maxInstance = 128
	maxName     = 253
)

// wireRows is the table of TestWireRules. Every rule has a row on its edge, which
// the server takes as it is, and one beyond it, which the server refuses and the
// recorder repairs.
func wireRows() []wireRow {
	var rows []wireRow
	for _, of := range [][]wireRow{
		noteRows(), reasonRows(), controllerRows(), instanceRows(), objectRows(), clusterScopedRows(), annotationRows(),
	} {
		rows = append(rows, of...)
	}
	return rows
}

func noteRows() []wireRow {
	// The first byte of every "é" has an odd offset, so that a cut after 1024-3
	// bytes falls between its two bytes.
	runes := strings.Repeat("é", maxNote)
	return []wireRow{
		{
			name: "note of 1024 bytes",
			emit: func(e *emission) { e.note = strings.Repeat("n", maxNote) },
		}, {
			name:    "note of 1025 bytes",
			emit:    func(e *emission) { e.note = strings.Repeat("n", maxNote+1) },
			refused: "message",
			want:    func(e *eventsv1.Event) { e.Note = strings.Repeat("n", maxNote-len("…")) + "…" },
		}, {
			name:    "note of 5000 bytes",
			emit:    func(e *emission) { e.note = strings.Repeat("n", 5000) },
			refused: "message",
			want:    func(e *eventsv1.Event) { e.Note = strings.Repeat("n", maxNote-len("…")) + "…" },
		}, {
			name:    "note that would be cut inside a rune",
			emit:    func(e *emission) { e.note = runes },
			refused: "message",
			want:    func(e *eventsv1.Event) { e.Note = strings.Repeat("é", (maxNote-len("…"))/2) + "…" },
		}, {
			name:    "note that is long with its arguments",
			emit:    func(e *emission) { e.note, e.args = "%s", []any{strings.Repeat("n", maxNote+1)} },
			refused: "message",
			want:    func(e *eventsv1.Event) { e.Note = strings.Repeat("n", maxNote-len("…")) + "…" },
		}, {
			name: "note with a percent sign and no arguments",
			emit: func(e *emission) { e.note = "95% full, 100%d" },
		}, {
			name: "note with a percent sign and arguments",
			emit: func(e *emission) { e.note, e.args = "%d%% full", []any{95} },
		}, {
			name: "empty note",
			emit: func(e *emission) { e.note = "" },
		}, {
			name: "note with control characters",
			emit: func(e *emission) { e.note = "a\x00b\nc\u2028d" },
		}, {
			name: "note that is not UTF-8",
			emit: func(e *emission) { e.note = "caf\xe9!" },
			want: func(e *eventsv1.Event) { e.Note = "caf\uFFFD!" },
		}, {
			// It becomes longer when it is made UTF-8.
			name:    "note of 1024 bytes that is not UTF-8",
			emit:    func(e *emission) { e.note = strings.Repeat("n\xff", maxNote/2) },
			refused: "message",
			want:    func(e *eventsv1.Event) { e.Note = strings.Repeat("n\uFFFD", (maxNote-len("…"))/4) + "n…" },
		},
	}
}

func reasonRows() []wireRow {
	return []wireRow{
		{
			name: "reason of 128 bytes",
			emit: func(e *emission) { e.reason = strings.Repeat("R", maxReason) },
		}, {
			name:    "reason of 129 bytes",
			emit:    func(e *emission) { e.reason = strings.Repeat("R", maxReason+1) },
			refused: "reason",
			want:    func(e *eventsv1.Event) { e.Reason = strings.Repeat("R", maxReason-len("…")) + "…" },
		}, {
			name:    "empty reason",
			emit:    func(e *emission) { e.reason = "" },
			refused: "reason",
			want:    func(e *eventsv1.Event) { e.Reason = "Testing" },
		}, {
			name: "reason that is not UTF-8",
			emit: func(e *emission) { e.reason = "Test\xffed" },
			want: func(e *eventsv1.Event) { e.Reason = "Test\uFFFDed" },
		}, {
			name: "action of 128 bytes",
			emit: func(e *emission) { e.action = strings.Repeat("A", maxAction) },
		}, {
			name:    "action of 129 bytes",
			emit:    func(e *emission) { e.action = strings.Repeat("A", maxAction+1) },
			refused: "action",
			want:    func(e *eventsv1.Event) { e.Action = strings.Repeat("A", maxAction-len("…")) + "…" },
		}, {
			name:    "empty action",
			emit:    func(e *emission) { e.action = "" },
			refused: "action",
			want:    func(e *eventsv1.Event) { e.Action = "Tested" },
		}, {
			name:    "long reason and empty action",
			emit:    func(e *emission) { e.reason, e.action = strings.Repeat("R", maxReason+1), "" },
			refused: "action",
			want: func(e *eventsv1.Event) {
				e.Reason = strings.Repeat("R", maxReason-len("…")) + "…"
				e.Action = e.Reason
			},
		}, {
			name:    "neither reason nor action",
			emit:    func(e *emission) { e.reason, e.action = "", "" },
			refused: "reason",
			want:    func(e *eventsv1.Event) { e.Reason, e.Action = "Unknown", "Unknown" },
		}, {
			name: "Warning",
			emit: func(e *emission) { e.eventtype = corev1.EventTypeWarning },
		},
	}
}

func controllerRows() []wireRow {
	row := func(name, controller, want string) wireRow {
		r := wireRow{name: name, emit: func(e *emission) { e.controller = controller }}
		if want != controller {
			r.refused = "reportingController"
			r.want = func(e *eventsv1.Event) { e.ReportingController = want }
		}
		return r
	}
	n63 := strings.Repeat("c", 63)
	// What is too long ends in a hash of it, so that two of them stay two.
	return []wireRow{
		row("controller without a prefix", "kubelet", "kubelet"),
		row("controller with a space", "example.com/my controller", "example.com/my-controller"),
		row("controller with two slashes", "example.com/team/controller", "example.com/team-controller"),
		row("controller name of 63 bytes", "example.com/"+n63, "example.com/"+n63),
		row("controller name of 64 bytes", "example.com/"+n63+"c", "example.com/"+n63[:54]+"-39f4a785"),
		row("controller of leader election", "host-0_"+strings.Repeat("0", 64), "host-0_"+strings.Repeat("0", 47)+"-ccd57e87"),
		row("controller prefix in upper case", "Example.COM/controller", "example.com/controller"),
		row("controller prefix of 253 bytes", strings.Repeat("p", 253)+"/controller", strings.Repeat("p", 253)+"/controller"),
		row("controller prefix of 254 bytes", strings.Repeat("p", 254)+"/controller", strings.Repeat("p", 244)+"-e890cf3d/controller"),
		row("controller without a name", "example.com/", "example.com/unknown"),
		row("controller without what is before the slash", "/controller", "controller"),
		row("controller that is not ASCII", "contrôleur", "contr-leur"),
		row("empty controller", "", "unknown"),
	}
}

func instanceRows() []wireRow {
	return []wireRow{
		{
			name: "instance of 128 bytes",
			emit: func(e *emission) { e.instance = strings.Repeat("i", maxInstance) },
		}, {
			name:    "instance of 129 bytes",
			emit:    func(e *emission) { e.instance = strings.Repeat("i", maxInstance+1) },
			refused: "reportingInstance",
			want:    func(e *eventsv1.Event) { e.ReportingInstance = strings.Repeat("i", maxInstance-9) + "-09bf9544" },
		}, {
			name: "instance with spaces and slashes",
			emit: func(e *emission) { e.instance = "a process / on Host_1" },
		}, {
			name: "instance that is not UTF-8",
			emit: func(e *emission) { e.instance = "host\xff1" },
			want: func(e *eventsv1.Event) { e.ReportingInstance = "host-1" },
		},
	}
}

func objectRows() []wireRow {
	row := func(name, object, wantName string) wireRow {
		return wireRow{
			name:     name,
			emit:     func(e *emission) { e.regarding.Name = object },
			refused:  "metadata.name",
			wantName: wantName,
		}
	}
	long := strings.Repeat("o", maxName)
	return []wireRow{
		row("object name in upper case", "My.Object", `my\.object\.HASH`),
		row("object name of 253 bytes", long, long[:236]+`\.HASH`),
		row("object name with a dot where it is cut", long[:235]+"."+long[:17], long[:235]+`\.HASH`),
		row("object name with what DNS forbids at its ends", "-_pod_-", `pod\.HASH`),
		row("object name with dots at its ends", "..pod..", `pod\.HASH`),
		row("object name with dashes beside dots", "a-.-b", `a\.b\.HASH`),
		row("object name with a slash", "a/b", `a-b\.HASH`),
		row("object name that is not ASCII", "größe", `gr--e\.HASH`),
		row("object name of nothing that DNS allows", "::", `HASH`),
		row("object without a name", "", `HASH`),
		{
			name:     "object name that is not UTF-8",
			emit:     func(e *emission) { e.regarding.Name = "pod\xff1" },
			refused:  "metadata.name",
			want:     func(e *eventsv1.Event) { e.Regarding.Name = "pod\uFFFD1" },
			wantName: `pod-1\.HASH`,
		}, {
			name: "object with a field path",
			emit: func(e *emission) { e.regarding.FieldPath = "spec.containers{main}" },
		}, {
			name: "object with a resource version",
			emit: func(e *emission) { e.regarding.ResourceVersion = "42" },
			want: func(e *eventsv1.Event) { e.Regarding.ResourceVersion = "" },
		}, {
			name: "related object",
			emit: func(e *emission) {
				e.related = &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "other", Name: "Rs:1", UID: "u"}
			},
		},
	}
}

func clusterScopedRows() []wireRow {
	row := func(name, kind, object, clusterNamespace, wantName string) wireRow {
		r := wireRow{
			name: name,
			emit: func(e *emission) {
				e.regarding = &corev1.ObjectReference{APIVersion: "v1", Kind: kind, Name: object}
				e.clusterNamespace = clusterNamespace
			},
			refused:  "involvedObject.namespace",
			want:     func(e *eventsv1.Event) { e.Namespace = "kube-system" },
			wantName: wantName,
		}
		if clusterNamespace != "" {
			r.want = func(e *eventsv1.Event) { e.Namespace = clusterNamespace }
		}
		return r
	}
	return []wireRow{
		row("Node", "Node", "node-1", "", ""),
		row("Namespace", "Namespace", "a-namespace", "", ""),
		row("Node in default", "Node", "node-1", "default", ""),
		row("ClusterRole with a colon", "ClusterRole", "system:discovery", "", `system-discovery\.HASH`),
	}
}

func annotationRows() []wireRow {
	const limit = 64 << 10
	return []wireRow{
		{
			name: "annotations",
			emit: func(e *emission) {
				e.annotations = map[string]string{"example.com/a": "1", "b": strings.Repeat("é", 1000), "example.com/empty": ""}
			},
		}, {
			name: "annotation with an invalid key",
			emit: func(e *emission) {
				e.annotations = map[string]string{"example.com/a": "1", "not a key": "2"}
			},
			refused:          "metadata.annotations",
			want:             func(e *eventsv1.Event) { delete(e.Annotations, "not a key") },
			omitsAnnotations: true,
		}, {
			name: "annotation with a key in upper case",
			emit: func(e *emission) { e.annotations = map[string]string{"Example.COM/A": "1"} },
		}, {
			name: "annotations of 64 KiB",
			emit: func(e *emission) {
				e.annotations = map[string]string{"big": strings.Repeat("a", limit-len("big"))}
			},
		}, {
			// A series takes no more than that, so that there is room for those
			// of later occurrences.
			name: "annotations of more than 64 KiB",
			emit: func(e *emission) {
				e.annotations = map[string]string{"big": strings.Repeat("a", limit-len("big")+1)}
			},
			want:             func(e *eventsv1.Event) { e.Annotations = nil },
			omitsAnnotations: true,
		}, {
			name: "annotations of more than the server takes",
			emit: func(e *emission) {
				e.annotations = map[string]string{"big": strings.Repeat("a", 256<<10)}
			},
			refused:          "metadata.annotations",
			want:             func(e *eventsv1.Event) { e.Annotations = nil },
			omitsAnnotations: true,
		}, {
			name: "annotation of this project",
			emit: func(e *emission) {
				e.annotations = map[string]string{"eventseries.dev/state": "Finished", "example.com/a": "1"}
			},
			want: func(e *eventsv1.Event) { delete(e.Annotations, "eventseries.dev/state") },
		}, {
			name: "annotation that is not UTF-8",
			emit: func(e *emission) { e.annotations = map[string]string{"a": "caf\xe9"} },
			want: func(e *eventsv1.Event) { e.Annotations["a"] = "caf\uFFFD" },
		},
	}
}
