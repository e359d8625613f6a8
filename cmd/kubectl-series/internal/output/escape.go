package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
)

// JSON returns a value as JSON in which no character can control a terminal.
func JSON(value any, prefix, indent string) ([]byte, error) {
	data, err := json.MarshalIndent(value, prefix, indent)
	return escape(data, false), err
}

// YAML returns a value as YAML in which no character can control a terminal.
func YAML(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var fields any
	if err := utiljson.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	var node yaml.Node
	if err := node.Encode(fields); err != nil {
		return nil, err
	}
	quote(&node)
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent() // as kubectl does
	if err := encoder.Encode(&node); err != nil {
		return nil, err
	}
	return escape(b.Bytes(), true), nil
}

// quote puts strings with characters to escape into double quotes, because only these have escapes.
func quote(node *yaml.Node) {
	for _, r := range node.Value {
		if !text.IsPrintable(r) {
			node.Style = yaml.DoubleQuotedStyle
			break
		}
	}
	for _, child := range node.Content {
		quote(child)
	}
}

// escape escapes the characters in quoted strings of JSON or YAML that could control a terminal,
// and that their encoders leave as they are, such as U+009B. The values stay the same.
func escape(data []byte, isYAML bool) []byte {
	plain := true
	for _, b := range data {
		plain = plain && b < 0x7f
	}
	if plain {
		return data
	}
	escaped := make([]byte, 0, len(data)+64)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case text.IsPrintable(r):
			escaped = append(escaped, data[:size]...)
		case r <= 0xffff:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		case isYAML:
			escaped = fmt.Appendf(escaped, `\U%08x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		}
		data = data[size:]
	}
	return escaped
}
