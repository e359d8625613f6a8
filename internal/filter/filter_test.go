package filter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/series"
)

func TestMatch(t *testing.T) {
	key := &series.Key{
		Type: "Normal", Reason: "Synced", Action: `a,b=c\`, ReportingController: "example.com/sync",
		Regarding: series.Reference{Kind: "Pod", Namespace: "shop"},
		Related:   series.Reference{Kind: "Node"},
	}
	for text, want := range map[string]bool{
		"":                                       true,
		"\n# nothing\n \n":                       true,
		"reason=Synced":                          true,
		"reason==Synced":                         true,
		"reason!=Synced":                         false,
		"reason=synced":                          false,
		" type = Normal , reason != Pulled ,":    true,
		"type=Normal,reason!=Synced":             false,
		"type=Warning\nregarding.namespace=shop": true,
		"type=Warning\r\nregarding.namespace=bar\r": false,
		`action=a\,b\=c\\,related.kind=Node`:        true,
		`action!=a\,b\=c\\`:                         false,
		"related.kind=":                             false,
		"related.kind!=":                            true,
		"regarding.kind!=Pod\nreason!=Synced":       false,
		"regarding.kind!=Node\nreason!=Synced":      true,
		"reportingController=example.com/sync":      true,
		"type!=Normal,type!=Warning":                false,
		"# type=Warning\nreason=Synced":             true,
	} {
		selectors, err := Parse(text)
		require.NoError(t, err)
		assert.Equal(t, want, selectors.Match(key), "%q", text)
	}
}

func TestInvalidSelectors(t *testing.T) {
	for text, want := range map[string][]string{
		"reson=Synced": {"line 1", `unknown field "reson"`, "regarding.namespace"},
		"type=Normal\n#\n\ttype=Warning, metadata.name!=a": {"line 3", `unknown field "metadata.name"`},
		"action=a,type=normal":                             {"line 1", `unknown type "normal"`, "Warning"},
		"type!=":                                           {"line 1", `unknown type ""`},
		"reason in (A,B)":                                  {"line 1", "reason in (A", "want a field"},
		"reason=a=b":                                       {"line 1", "want a field"},
		`reason=a\`:                                        {"line 1", "want a field"},
		"type=Normal,reason!=\"Synced\"":                   {"line 1", `the value "Synced" of reason is in quotes`},
		"reason=A\n,,":                                     {"line 2", `no requirement in ",,"`},
		"reason!=A\ntype=Normal\nreason!=B":                {"line 3: with line 1", `"reason!=B"`, "comma"},
	} {
		_, err := Parse(text)
		for _, part := range want {
			assert.ErrorContains(t, err, part, text)
		}
	}
}
