package rbac

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const prefix = "// +kubebuilder:rbac:"

func texts(findings []Finding) (list []string) {
	for _, f := range findings {
		list = append(list, strings.TrimPrefix(strings.TrimPrefix(f.Text, noGroup), noPatch))
	}
	return list
}

func TestMarkers(t *testing.T) {
	const fresh = "groups=events.k8s.io,resources=events,verbs=create;patch"
	for marker, want := range map[string][]string{
		`groups="",resources=events,verbs=create;patch`:             {fresh},
		`groups=core,resources=events,verbs=create`:                 {"groups=core,resources=events,verbs=create;patch", fresh},
		`groups="",resources=pods;events,verbs=get;create;update`:   {`groups="",resources=pods;events,verbs=get;create;update;patch`, fresh},
		`groups={"",apps},resources={pods,events},verbs={create}`:   {`groups="";apps,resources=pods;events,verbs=create;patch`, fresh},
		`groups="",resources=events,verbs="create;patch"`:           {fresh},
		`groups="",namespace=a,resources=events,verbs=create;patch`: {fresh + ",namespace=a"},
		`groups=events.k8s.io,resources=events,verbs=create;update`: {"groups=events.k8s.io,resources=events,verbs=create;update;patch"},
		`groups="",resources="*",verbs="*"`:                         {fresh},
		`groups="*",resources="*",verbs="*"`:                        nil,
		`groups="",resources=events,verbs=get;list;watch`:           nil,
		`groups="",resources=pods,verbs=create`:                     nil,
		`groups=apps,resources=events,verbs=create`:                 nil,
	} {
		for i := range want {
			want[i] = prefix + want[i]
		}
		assert.Equal(t, want, texts(Markers([]string{"// a comment", prefix + marker}, true)), marker)
	}
	assert.Empty(t, Markers([]string{prefix + `groups="",resources=events,verbs=create;patch`}, false))
}

// Each role needs a rule of its own, however its markers are written.
func TestMarkersOfRoles(t *testing.T) {
	got := Markers([]string{
		`//+kubebuilder:rbac:groups="",resources=events,verbs=create;patch`,
		`//  +kubebuilder:rbac:groups=core,resources=events,verbs=create;patch`,
		prefix + `groups=core,resources=events,verbs=create;patch,roleName=a`,
	}, true)
	assert.Len(t, got, 2)
	assert.Equal(t, 0, got[0].Index)
	assert.Equal(t, 2, got[1].Index)
}

// The markers of a role complete each other: one role is made of all.
func TestMarkersOfOneRole(t *testing.T) {
	assert.Empty(t, Markers([]string{
		prefix + `groups="",resources=events,verbs=create;watch;update`,
		prefix + `groups="",resources=events,verbs=patch`,
		prefix + `groups=core;events.k8s.io,resources=events,verbs=create;patch`,
	}, true))
	assert.Equal(t, []string{
		prefix + `groups="",resources=events,verbs=create;update;patch`,
		prefix + `groups=events.k8s.io,resources=events,verbs=create;patch`,
	}, texts(Markers([]string{
		prefix + `groups="",resources=events,verbs=create;update`,
		prefix + `groups=core,resources=events,verbs=create`,
		prefix + `groups=events.k8s.io,resources=events,verbs=create`,
		prefix + `groups="",resources=events,verbs=patch,roleName=a`,
	}, false))[:2])
}

// What is missing has the form of the file. In the wanted text, the number is the line.
func TestYAML(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"block": {
			"rules:\n- apiGroups:\n  - \"\"\n  resources:\n  - events\n  verbs:\n  - create\n  - patch\n",
			"- apiGroups:\n  - events.k8s.io\n  resources:\n  - events\n  verbs:\n  - create\n  - patch",
		},
		"flow, without patch": {
			"rules:\n  - verbs: [\"create\", \"update\"] # no patch\n    apiGroups: [\"\"]\n    resources: [\"events\"]",
			"  - apiGroups: [\"\"]\n    resources: [\"events\"]\n    verbs: [\"create\", \"update\", \"patch\"]\n" +
				"  - apiGroups: [\"events.k8s.io\"]\n    resources: [\"events\"]\n    verbs: [\"create\", \"patch\"]",
		},
		"braces": {
			"rules:\n- {apiGroups: [''], resources: [events], verbs: [create, patch]}\n", "- {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}",
		},
		"a template": {
			"{{- if .Values.rbac }}\nname: {{ .Values.name }}-{{ .Release }}\nrules:\n{{- with .Values.all }}\n  # {{ . }}\n  - apiGroups:\n      - ''\n    resources:\n      - 'events'\n" +
				"    verbs:\n      - 'create'\n      - 'patch'\n{{- end }}\n{{ end }}\n",
			"  - apiGroups:\n      - 'events.k8s.io'\n    resources:\n      - 'events'\n    verbs:\n      - 'create'\n      - 'patch'",
		},
		"an action of several lines": {
			"{{- $x := dict\n  \"a\" }}\nrules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: {{ list\n    \"a\" }}\n---\nrules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: [create, patch]\n",
			"- apiGroups: [events.k8s.io]\n  resources: [events]\n  verbs: [create, patch]",
		},
		"a template that is no YAML": {
			"metadata:\n{{ include \"a\" . | indent 2 }}\n  b: c: d\nrules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: [create, patch]\nother:\n", noYAML,
		},
		"CRLF": {
			"rules:\r\n- apiGroups: ['']\r\n  resources: ['*'] # all\r\n  verbs: ['*']\r\n",
			"- apiGroups: ['events.k8s.io']\n  resources: ['events']\n  verbs: ['create', 'patch']",
		},
		"an alias": {
			"verbs: &verbs [create, patch]\nrules:\n- apiGroups: [core]\n  resources: [events]\n  verbs: *verbs\n",
			"- apiGroups: [events.k8s.io]\n  resources: [events]\n  verbs: [create, patch]",
		},
		"a merge": {
			"a: &a\n  apiGroups: [b]\n  resources: [events]\n  verbs: [create, patch]\nrules:\n- <<: *a\n  apiGroups: ['']\n",
			"- apiGroups: [events.k8s.io]\n  resources: [events]\n  verbs: [create, patch]",
		},
		"a patch of Kustomize": {
			"- op: add\n  path: /rules/-\n  value:\n    apiGroups: ['']\n    resources: [events]\n    verbs: [create, patch]\n",
			"    apiGroups: [events.k8s.io]\n    resources: [events]\n    verbs: [create, patch]",
		},
		"several roles, one of them for leader election, one complete": {
			"kind: Role\nmetadata: {name: leader-election-role}\nrules:\n- apiGroups: [\"\"]\n  resources: [events]\n  verbs: [create, patch]\n" +
				"---\na:\n  rules:\n  - apiGroups: [\"\"]\n    resources: [pods, events]\n    verbs: [create, patch]\n  - apiGroups: [events.k8s.io]\n    resources: [events]\n    verbs: [create, patch]\n" +
				"b:\n  rules:\n  - apiGroups: [\"\"]\n    resources: [events]\n    verbs: [create, patch]\n",
			"  - apiGroups: [events.k8s.io]\n    resources: [events]\n    verbs: [create, patch]",
		},
		"leader election in one word": {"kind: Role\nmetadata: {name: \"{{ .Release.Name }}:leaderelection\"}\nrules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: [create]\n", ""},
		"leader election without a name": {
			"permissions:\n- rules:\n  - apiGroups: [coordination.k8s.io]\n    resources: [leases]\n    verbs: [create]\n  - apiGroups: ['']\n    resources: [configmaps]\n    verbs: [get]\n" +
				"  - apiGroups: ['']\n    resources: [events]\n    verbs: [create]\n", "",
		},
		"leader election in a role with other rules": {
			"rules:\n- apiGroups: [coordination.k8s.io]\n  resources: [leases]\n  verbs: [create]\n- apiGroups: ['']\n  resources: [pods, events]\n  verbs: [create, patch]\n",
			"- apiGroups: [events.k8s.io]\n  resources: [events]\n  verbs: [create, patch]",
		},
		"a FlowSchema":               {"resourceRules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: [create]\n  namespaces: ['*']\n", ""},
		"a webhook":                  {"rules:\n- apiGroups: ['']\n  resources: [events]\n  operations: [CREATE]\n  verbsNot: []\n", ""},
		"a viewer":                   {"rules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: [get, list, watch]\n", ""},
		"a rule for the events of b": {"rules:\n- apiGroups: [b]\n  resources: [events]\n  verbs: [create]\n", ""},
	} {
		assert.Equal(t, c.want, strings.Join(texts(YAML([]byte(c.in), true)), "\n"), name)
	}
	got := YAML([]byte("a: b\n---\nrules:\n- apiGroups: ['']\n  resources: [events]\n  verbs: [create, update]\n"), false)
	assert.Len(t, got, 1, "counts need patch")
	assert.Equal(t, 4, got[0].Index)
}
