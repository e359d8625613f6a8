// Package verb derives the action of an event from the name of its reason: "Create" from
// SuccessfulCreate, and "" from NodeNotReady, which has no verb. An action is what the controller did or tried, so the words for a result do not count.
package verb

import (
	"cmp"
	_ "embed" // words.txt
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Action returns the action of an event with the given reason, or "" if the reason has no
// verb that this package knows, or consists of the verb alone. A wrong action stays in the
// API of a program, so in doubt there is none.
func Action(reason string) string {
	all := Words(reason)
	words := trim(all)
	if len(words) == 0 || slices.Contains(words, "No") || slices.Contains(words, "Not") || slices.Contains(all, "Invalid") {
		return ""
	}
	first, last := words[0], words[len(words)-1]
	v, rest := base(first), strings.Join(words[1:], "")
	if len(words) > 1 {
		switch hasResult := last != all[len(all)-1]; {
		case observed[strings.ToLower(last)] != "":
			return "" // ControlPlaneInitialized: the controller can have waited for it
		case participle(last):
			return base(last) + object(words, true) // AdmissionCheckUpdated, ScaledObjectDeleted: what is before it, is a noun
		case strings.HasSuffix(last, "ed"), states[strings.ToLower(last)] != "":
			return "" // a participle or a state that this package does not know as a verb
		case participle(first) && hasResult: // ScaledObjectUpdateFailed
			if forms[strings.ToLower(last)] != strings.ToLower(last) || isSet(last) {
				return ""
			}
			return base(last) + object(words, false)
		case participle(first):
		case gerund(last), nouns[strings.ToLower(last)] != "":
			return base(last) + object(words, false) // VolumeExpansion
		case gerund(first) && kinds[rest] == "", nouns[strings.ToLower(first)] != "":
			return "" // ProvisioningRequest and MigrationPlan are things
		}
	}
	switch {
	case v == "" && isSet(last):
		return "" // StatefulSet
	case v == "" && base(last) != "":
		return base(last) + object(words, false)
	case v == "":
	case !strings.EqualFold(v+rest, reason):
		return v + rest
	case len(words) > 1:
		return v // CreateCertificate: an action that equals its reason says nothing
	}
	return ""
}

// object returns the words before a verb at the end, if they name what it acts on: in front of a
// participle, what is no adverb, and elsewhere what does nothing itself.
func object(words []string, passive bool) string {
	words = words[:len(words)-1]
	if len(words) == 0 {
		return ""
	}
	first, last := strings.ToLower(words[0]), strings.ToLower(words[len(words)-1])
	if fillers[first] != "" || fillers[last] != "" || strings.HasSuffix(last, "ly") || !passive && agent.MatchString(last) {
		return ""
	}
	return strings.Join(words, "")
}

// agent matches nouns such as manager, and adjectives such as external.
var agent = regexp.MustCompile(`(er|or|al)$`)

// isSet reports whether a word at the end is that of a StatefulSet, ReplicaSet, and so on.
func isSet(word string) bool { return strings.EqualFold(word, "set") }

// participle reports whether a word is the past participle of a verb.
func participle(word string) bool {
	w := strings.ToLower(word)
	v := forms[w]
	return v != "" && v != w && nouns[w] == "" && !gerund(word) && !strings.HasSuffix(w, "s")
}

// gerund reports whether a word is a verb with ing.
func gerund(word string) bool { return strings.HasSuffix(word, "ing") && base(word) != "" }

// trim removes the words that tell a result.
func trim(words []string) []string {
	for len(words) > 0 && results[strings.ToLower(words[0])] != "" {
		words = words[1:]
	}
	for len(words) > 0 && results[strings.ToLower(words[len(words)-1])] != "" {
		words = words[:len(words)-1]
	}
	return words
}

// Words splits a name in UpperCamelCase. An acronym is one word.
func Words(name string) (words []string) {
	runes := []rune(name)
	start := 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) {
			switch {
			case runes[i] == '_' || runes[i] == '-' || runes[i] == ' ' || runes[i] == '.' || runes[i] == '/':
			case unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1]):
			case unicode.IsUpper(runes[i]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]) && !isPlural(runes[i:]):
			default:
				continue
			}
		}
		if word := strings.Trim(string(runes[start:i]), "_-. /"); word != "" {
			r, size := utf8.DecodeRuneInString(word)
			words = append(words, string(unicode.ToUpper(r))+word[size:])
		}
		start = i
	}
	return words
}

// isPlural reports whether runes begin with the last letter and the s of an acronym, as
// in PVCs.
func isPlural(runes []rune) bool {
	return len(runes) > 1 && runes[1] == 's' && (len(runes) == 2 || unicode.IsUpper(runes[2]))
}

// base returns the verb of which word is a form, or "".
func base(word string) string {
	w := strings.ToLower(word)
	v, ok := forms[w]
	if !ok {
		return ""
	}
	return strings.ToUpper(v[:1]) + v[1:]
}

//go:embed words.txt
var text string

var (
	lists                            = read()
	states, observed, results, kinds = lists["state"], lists["observed"], lists["result"], lists["kind"]
	nouns, fillers                   = lists["action"], lists["filler"]
	forms                            = conjugate()
)

// read returns the lists of words.txt. A word without a value has itself.
func read() map[string]map[string]string {
	lists := map[string]map[string]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if lists[words[0]] == nil {
			lists[words[0]] = map[string]string{}
		}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			lists[words[0]][key] = cmp.Or(value, key)
		}
	}
	return lists
}

// conjugate returns the verb of each form.
func conjugate() map[string]string {
	forms := map[string]string{}
	for _, v := range slices.Sorted(maps.Keys(lists["verb"])) {
		switch {
		case strings.HasSuffix(v, "e") && !strings.HasSuffix(v, "ee"):
			stem := v[:len(v)-1]
			forms[v+"d"], forms[stem+"ing"] = v, v
		case strings.HasSuffix(v, "y") && !strings.ContainsRune("aeiou", rune(v[len(v)-2])):
			forms[v[:len(v)-1]+"ied"], forms[v+"ing"], forms[v[:len(v)-1]+"ies"] = v, v, v
		default:
			forms[v+"ed"], forms[v+"ing"] = v, v
			double := v + v[len(v)-1:]
			forms[double+"ed"], forms[double+"ing"] = v, v // stopped, cancelled
		}
		forms[v] = v
		if strings.HasSuffix(v, "ch") || strings.HasSuffix(v, "sh") || strings.HasSuffix(v, "s") || strings.HasSuffix(v, "x") {
			forms[v+"es"] = v
		} else {
			forms[v+"s"] = v
		}
	}
	for v, form := range lists["irregular"] {
		forms[v], forms[form] = v, v
	}
	maps.Copy(forms, nouns)
	for w := range lists["noun"] {
		delete(forms, w)
	}
	return forms
}
