package integration

import (
	"maps"
	"slices"
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

// wireRows is the table of TestWireRules. Every rule has a row at its limit,
// which the server accepts unchanged, and one beyond it, which the server
// rejects and the recorder repairs.
func wireRows() []wireRow {
	return slices.Concat(noteRows(), reasonRows(), controllerRows(), instanceRows(), objectRows(), clusterScopedRows(), annotationRows())
}

func noteRows() []wireRow {
	row := func(name, rejected, note, want string, args ...any) wireRow {
		r := wireRow{name: name, rejected: rejected, emit: func(e *emission) { e.note, e.args = note, args }}
		if want != note {
			r.want = func(e *eventsv1.Event) { e.Note = want }
		}
		return r
	}
	unchanged := func(name, note string) wireRow { return row(name, "", note, note) }
	n := func(length int) string { return strings.Repeat("n", length) }
	cut := n(maxNote-len("…")) + "…"
	return []wireRow{
		unchanged("note of 1024 bytes", n(maxNote)),
		row("note of 1025 bytes", "note", n(maxNote+1), cut),
		row("note of 5000 bytes", "note", n(5000), cut),
		// The first byte of every "é" has an odd offset, so a cut after 1024-3
		// bytes is between its two bytes.
		row("note with a rune at the limit", "note", strings.Repeat("é", maxNote), strings.Repeat("é", (maxNote-len("…"))/2)+"…"),
		row("note that arguments make too long", "note", "%s", cut, n(maxNote+1)),
		unchanged("note with a percent sign and no arguments", "95% full, 100%d"),
		row("note with a percent sign and arguments", "", "%d%% full", "95% full", 95),
		unchanged("empty note", ""),
		unchanged("note with control characters", "a\x00b\nc\u2028d"),
		row("note that is not UTF-8", "", "caf\xe9!", "caf\uFFFD!"),
		// It grows when the recorder makes it UTF-8.
		row("note of 1024 bytes that is not UTF-8", "note",
			strings.Repeat("n\xff", maxNote/2), strings.Repeat("n\uFFFD", (maxNote-len("…"))/4)+"n…"),
	}
}

func reasonRows() []wireRow {
	row := func(name, rejected, reason, action, wantReason, wantAction string) wireRow {
		return wireRow{
			name:     name,
			rejected: rejected,
			emit:     func(e *emission) { e.reason, e.action = reason, action },
			want:     func(e *eventsv1.Event) { e.Reason, e.Action = wantReason, wantAction },
		}
	}
	reason, action := strings.Repeat("R", maxReason), strings.Repeat("A", maxAction)
	cutReason, cutAction := reason[:maxReason-len("…")]+"…", action[:maxAction-len("…")]+"…"
	return []wireRow{
		row("reason of 128 bytes", "", reason, "Testing", reason, "Testing"),
		row("reason of 129 bytes", "reason", reason+"R", "Testing", cutReason, "Testing"),
		row("empty reason", "reason", "", "Testing", "Testing", "Testing"),
		row("reason that is not UTF-8", "", "Test\xffed", "Testing", "Test\uFFFDed", "Testing"),
		row("action of 128 bytes", "", "Tested", action, "Tested", action),
		row("action of 129 bytes", "action", "Tested", action+"A", "Tested", cutAction),
		row("empty action", "action", "Tested", "", "Tested", "Tested"),
		row("long reason and empty action", "action", reason+"R", "", cutReason, cutReason),
		row("neither reason nor action", "reason", "", "", "Unknown", "Unknown"),
		{
			name: "Warning",
			emit: func(e *emission) { e.eventtype = corev1.EventTypeWarning },
		},
	}
}

func controllerRows() []wireRow {
	row := func(name, controller, want string) wireRow {
		r := wireRow{name: name, emit: func(e *emission) { e.controller = controller }}
		if want != controller {
			r.rejected = "reportingController"
			r.want = func(e *eventsv1.Event) { e.ReportingController = want }
		}
		return r
	}
	n63, p253 := strings.Repeat("c", 63), strings.Repeat("p", 253)
	// A name that is too long ends in its hash, so that different names stay
	// different.
	return []wireRow{
		row("controller without a prefix", "kubelet", "kubelet"),
		row("controller with a space", "example.com/my controller", "example.com/my-controller"),
		row("controller with two slashes", "example.com/team/controller", "example.com/team-controller"),
		row("controller name of 63 bytes", "example.com/"+n63, "example.com/"+n63),
		row("controller name of 64 bytes", "example.com/"+n63+"c", "example.com/"+n63[:54]+"-39f4a785"),
		row("leader election identity", "host-0_"+strings.Repeat("0", 64), "host-0_"+strings.Repeat("0", 47)+"-ccd57e87"),
		row("controller prefix in upper case", "Example.COM/controller", "example.com/controller"),
		row("controller prefix of 253 bytes", p253+"/controller", p253+"/controller"),
		row("controller prefix of 254 bytes", p253+"p/controller", p253[:244]+"-e890cf3d/controller"),
		row("controller without a name", "example.com/", "example.com/unknown"),
		row("controller with an empty prefix", "/controller", "controller"),
		row("controller that is not ASCII", "contrôleur", "contr-leur"),
		row("empty controller", "", "unknown"),
	}
}

func instanceRows() []wireRow {
	row := func(name, rejected, instance, want string) wireRow {
		return wireRow{
			name:     name,
			rejected: rejected,
			emit:     func(e *emission) { e.instance = instance },
			want:     func(e *eventsv1.Event) { e.ReportingInstance = want },
		}
	}
	i128 := strings.Repeat("i", maxInstance)
	return []wireRow{
		row("instance of 128 bytes", "", i128, i128),
		row("instance of 129 bytes", "reportingInstance", i128+"i", i128[:maxInstance-9]+"-09bf9544"),
		row("instance with spaces and slashes", "", "a process / on Host_1", "a process / on Host_1"),
		row("instance that is not UTF-8", "", "host\xff1", "host-1"),
	}
}

func objectRows() []wireRow {
	row := func(name, object, wantName string) wireRow {
		return wireRow{
			name:     name,
			emit:     func(e *emission) { e.regarding.Name = object },
			rejected: "metadata.name",
			wantName: wantName,
		}
	}
	long := strings.Repeat("o", maxName)
	notUTF8 := row("object name that is not UTF-8", "pod\xff1", `pod-1\.HASH`)
	notUTF8.want = func(e *eventsv1.Event) { e.Regarding.Name = "pod\uFFFD1" }
	return []wireRow{
		row("object name in upper case", "My.Object", `my\.object\.HASH`),
		row("object name of 253 bytes", long, long[:236]+`\.HASH`),
		row("object name with a dot at the cut", long[:235]+"."+long[:17], long[:235]+`\.HASH`),
		row("object name with invalid ends", "-_pod_-", `pod\.HASH`),
		row("object name with dots at its ends", "..pod..", `pod\.HASH`),
		row("object name with dashes beside dots", "a-.-b", `a\.b\.HASH`),
		row("object name with a slash", "a/b", `a-b\.HASH`),
		row("object name that is not ASCII", "größe", `gr--e\.HASH`),
		row("object name without a valid character", "::", `HASH`),
		row("object without a name", "", `HASH`),
		notUTF8,
		{
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
	row := func(name, kind, object, clusterNamespace, wantNamespace, wantName string) wireRow {
		return wireRow{
			name: name,
			emit: func(e *emission) {
				e.regarding = &corev1.ObjectReference{APIVersion: "v1", Kind: kind, Name: object}
				e.clusterNamespace = clusterNamespace
			},
			rejected: "regarding.namespace",
			want:     func(e *eventsv1.Event) { e.Namespace = wantNamespace },
			wantName: wantName,
		}
	}
	return []wireRow{
		row("Node", "Node", "node-1", "", "kube-system", ""),
		row("Namespace", "Namespace", "a-namespace", "", "kube-system", ""),
		row("Node in default", "Node", "node-1", "default", "default", ""),
		row("ClusterRole with a colon", "ClusterRole", "system:discovery", "", "kube-system", `system-discovery\.HASH`),
	}
}

func annotationRows() []wireRow {
	type m = map[string]string
	row := func(name, rejected string, omits bool, annotations, want m) wireRow {
		return wireRow{
			name:             name,
			rejected:         rejected,
			omitsAnnotations: omits,
			emit:             func(e *emission) { e.annotations = annotations },
			want:             func(e *eventsv1.Event) { e.Annotations = maps.Clone(want) },
		}
	}
	unchanged := func(name string, annotations m) wireRow { return row(name, "", false, annotations, annotations) }
	// A series has no more annotations than that, to leave room for those of
	// later occurrences.
	const limit = 64 << 10
	big := strings.Repeat("a", limit-len("big"))
	return []wireRow{
		unchanged("annotations", m{"example.com/a": "1", "b": strings.Repeat("é", 1000), "example.com/empty": ""}),
		row("annotation with an invalid key", "metadata.annotations", true, m{"example.com/a": "1", "not a key": "2"}, m{"example.com/a": "1"}),
		unchanged("annotation with a key in upper case", m{"Example.COM/A": "1"}),
		unchanged("annotations of 64 KiB", m{"big": big}),
		row("annotations of more than 64 KiB", "", true, m{"big": big + "a"}, nil),
		row("annotations of more than 256 KiB", "metadata.annotations", true, m{"big": strings.Repeat("a", 256<<10)}, nil),
		row("annotation of this project", "", false, m{"eventseries.dev/state": "Finished", "example.com/a": "1"}, m{"example.com/a": "1"}),
		row("annotation that is not UTF-8", "", false, m{"a": "caf\xe9"}, m{"a": "caf\uFFFD"}),
	}
}
