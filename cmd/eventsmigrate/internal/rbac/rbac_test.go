package rbac

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const prefix = "// +kubebuilder:rbac:"

func TestMarkers(t *testing.T) {
	const fresh = "groups=events.k8s.io,resources=events,verbs=create;patch"
	for marker, want := range map[string]struct{ core, gone []string }{
		`groups="",resources=events,verbs=create;patch`: {
			[]string{`groups="",resources=events,verbs=create;patch`, fresh}, []string{fresh},
		},
		`groups=core,resources=events,verbs=create`: {
			[]string{`groups=core,resources=events,verbs=create;patch`, fresh}, []string{fresh},
		},
		`groups="",resources=events,verbs=create;update`: {
			[]string{`groups="",resources=events,verbs=create;update;patch`, fresh}, []string{fresh},
		},
		`groups="",resources=pods;events,verbs=get;create;update`: {
			[]string{`groups="",resources=pods,verbs=get;create;update`, `groups="",resources=events,verbs=get;create;update;patch`, fresh},
			[]string{`groups="",resources=pods,verbs=get;create;update`, `groups="",resources=events,verbs=get;create;update;patch`, fresh},
		},
		`groups="";apps,resources=deployments;events,verbs=create;patch`: {
			[]string{`groups="";apps,resources=deployments,verbs=create;patch`, `groups="",resources=events,verbs=create;patch`, fresh},
			[]string{`groups="";apps,resources=deployments,verbs=create;patch`, fresh},
		},
		`groups={"",apps},resources={pods,events},verbs={create,patch}`: {
			[]string{`groups={"",apps},resources=pods,verbs={create,patch}`, `groups="",resources=events,verbs=create;patch`, fresh},
			[]string{`groups={"",apps},resources=pods,verbs={create,patch}`, fresh},
		},
		`groups="",namespace=shop,resources=events,verbs=create;patch`: {
			[]string{`groups="",namespace=shop,resources=events,verbs=create;patch`, `groups=events.k8s.io,namespace=shop,resources=events,verbs=create;patch`},
			[]string{`groups=events.k8s.io,namespace=shop,resources=events,verbs=create;patch`},
		},
		`groups=events.k8s.io,resources=events,verbs=create;update`: {
			[]string{`groups=events.k8s.io,resources=events,verbs=create;update;patch`}, []string{`groups=events.k8s.io,resources=events,verbs=create;update;patch`},
		},
		`groups="",resources="*",verbs="*"`:               {[]string{`groups="",resources="*",verbs="*"`, fresh}, []string{`groups="",resources="*",verbs="*"`, fresh}},
		`groups="*",resources="*",verbs="*"`:              {nil, nil},
		`groups="",resources=events,verbs=get;list;watch`: {nil, nil},
		`groups="",resources=pods,verbs=create`:           {nil, nil},
	} {
		for core, lines := range map[bool][]string{true: want.core, false: want.gone} {
			got := Markers([]string{"// a comment", prefix + marker}, Needs{Core: core, New: true})
			if lines == nil {
				assert.Empty(t, got, marker)
				continue
			}
			var all []string
			for _, l := range lines {
				all = append(all, prefix+l)
			}
			assert.Equal(t, map[int][]string{1: all}, got, "%s, core: %t", marker, core)
			assert.Empty(t, Markers(all, Needs{Core: core, New: true}), "a second run changes %v", all)
		}
	}
}

// Each role needs a rule of its own, however its markers are written.
func TestMarkersOfRoles(t *testing.T) {
	changed := Markers([]string{
		`//+kubebuilder:rbac:groups="",resources=events,verbs=create;patch`,
		`//  +kubebuilder:rbac:groups=core,resources=events,verbs=create;patch`,
		prefix + `groups=core,resources=events,verbs=create;patch,roleName=a`,
	}, Needs{Core: true, New: true})
	assert.Len(t, changed[0], 2)
	assert.Empty(t, changed[1])
	assert.Len(t, changed[2], 2)
}

func TestYAML(t *testing.T) {
	const documents = `kind: Role
metadata: {name: leader-election-role}
rules:
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
---
kind: ClusterServiceVersion
spec:
  install:
    spec:
      clusterPermissions:
      - serviceAccountName: a
        rules:
        - apiGroups: [""]
          resources: [pods, events]
          verbs: [create]
`
	for name, c := range map[string]struct{ in, want string }{
		"block": {`# a comment
kind: ClusterRole
rules:
- apiGroups:
  - ""
  resources:
  - events
  verbs:
  - create
  - patch
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get]
`, `# a comment
kind: ClusterRole
rules:
- apiGroups:
  - ""
  resources:
  - events
  verbs:
  - create
  - patch
- apiGroups:
  - events.k8s.io
  resources:
  - events
  verbs:
  - create
  - patch
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get]
`},
		"flow, without patch, at the end of the file": {`kind: Role
rules:
  - verbs: ["create", "update"] # no patch
    apiGroups: [""]
    resources: ["events"]`, `kind: Role
rules:
  - verbs: ["create", "update", "patch"] # no patch
    apiGroups: [""]
    resources: ["events"]
  - verbs: ["create", "patch"]
    apiGroups: [events.k8s.io]
    resources: ["events"]
`},
		"several documents, one of them for leader election": {documents, documents + `        - apiGroups: [events.k8s.io]
          resources: [events]
          verbs: [create, patch]
`},
		"CRLF and comments": {
			"rules:\r\n- apiGroups: ['']\r\n  resources: ['*'] # all\r\n  verbs: ['*'] # of them\r\n  # end\r\n",
			"rules:\r\n- apiGroups: ['']\r\n  resources: ['*'] # all\r\n  verbs: ['*'] # of them\r\n- apiGroups: [events.k8s.io]\r\n" +
				"  resources: ['events']\r\n  verbs: ['create', 'patch']\r\n  # end\r\n",
		},
		"a list on several lines, and an anchor": {
			"rules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: &verbs [\n    create,\n    patch, # ]\n  ]\n- apiGroups: [a]\n  resources: [b]\n  verbs: *verbs\n",
			"rules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: &verbs [\n    create,\n    patch, # ]\n  ]\n" +
				"- apiGroups: [events.k8s.io]\n  resources: [events]\n  verbs: [create, patch]\n- apiGroups: [a]\n  resources: [b]\n  verbs: *verbs\n",
		},
		"an alias": {
			"verbs: &verbs [create, patch]\nrules:\n- apiGroups: [core]\n  resources: [events]\n  verbs: *verbs\n",
			"verbs: &verbs [create, patch]\nrules:\n- apiGroups: [core]\n  resources: [events]\n  verbs: *verbs\n" +
				"- apiGroups: [events.k8s.io]\n  resources: [events]\n  verbs: [create, patch]\n",
		},
		"a FlowSchema": {"resourceRules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: [create]\n  namespaces: ['*']\n", ""},
		"reading":      {"rules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: [get, list]\n", ""},
		"granted":      {"rules:\n- apiGroups: ['', events.k8s.io]\n  resources: [events]\n  verbs: [create, patch]\n", ""},
		"webhook":      {"rules:\n- apiGroups: ['']\n  resources: [events]\n  operations: [CREATE]\n  verbsNot: []\n", ""},
	} {
		want := c.want
		if want == "" {
			want = c.in
		}
		got, findings := YAML([]byte(c.in), Needs{New: true})
		assert.Equal(t, want, string(got), name)
		assert.Equal(t, want != c.in, len(findings) > 0, name)
		again, _ := YAML(got, Needs{New: true})
		assert.Equal(t, want, string(again), "%s: a second run", name)
	}
	// Without events in the new group, rules only get the verb that counts need.
	update := "rules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: [create, update]\n"
	for needs, want := range map[Needs]string{{}: update, {Core: true}: strings.Replace(update, "update]", "update, patch]", 1)} {
		got, _ := YAML([]byte(update), needs)
		assert.Equal(t, want, string(got), "%+v", needs)
	}
	src := "rules:\n{{- if .Values.rbac }}\n- apiGroups: ['']\n  resources: [events]\n  verbs: [create]\n{{- end }}\n"
	got, findings := YAML([]byte(src), Needs{New: true})
	assert.Equal(t, src, string(got))
	assert.Equal(t, 4, findings[0].Line)
	assert.True(t, strings.HasPrefix(findings[0].Text, "the file is a template"))
	for name, src := range map[string]string{
		"flow style":     "rules: [{apiGroups: [''], resources: [events], verbs: [create, patch]}]\n",
		"a flow rule":    "rules:\n- {apiGroups: [''], resources: [events], verbs: [create, patch]}\n",
		"a patch":        "- op: add\n  path: /rules/-\n  value:\n    apiGroups: ['']\n    resources: [events]\n    verbs: [create, patch]\n",
		"a merge":        "a: &a\n  apiGroups: [b]\n  resources: [events]\n  verbs: [create, patch]\nrules:\n- <<: *a\n  apiGroups: ['']\n",
		"an alias":       "rules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: &a [create]\n- apiGroups: [events.k8s.io]\n  resources: [events]\n  verbs: *a\n",
		"no valid YAML":  "rules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: [create\n",
		"unusual dashes": "rules:\n-\n  apiGroups: ['']\n  resources: [events]\n  verbs: [create, patch]\n",
	} {
		_, findings := YAML([]byte(src), Needs{New: true})
		assert.True(t, len(findings) > 0 && slices.ContainsFunc(findings, func(f Finding) bool { return !f.Changed }), "%s is not reported: %v", name, findings)
	}
}
