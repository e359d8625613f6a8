// Package verb derives the action of an event from the name of its reason.
//
//	Action("SuccessfulCreate") // "Create"
//	Action("FailedAttachVolume") // "AttachVolume"
//	Action("VolumeRecycled") // "Recycle"
//	Action("NodeNotReady") // "", because it has no verb
//
// An action is what the controller did or tried, so the words for a result do not count.
package verb

import (
	"maps"
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
		case observed[strings.ToLower(last)]:
			return "" // ControlPlaneInitialized: the controller can have waited for it
		case participle(last):
			return base(last) // AdmissionCheckUpdated, ScaledObjectDeleted: what is before it, is a noun
		case strings.HasSuffix(last, "ed"), states[strings.ToLower(last)]:
			return "" // a participle or a state that this package does not know as a verb
		case participle(first) && hasResult: // ScaledObjectUpdateFailed
			if forms[strings.ToLower(last)] != strings.ToLower(last) || isSet(last) {
				return ""
			}
			return base(last)
		case participle(first):
		case gerund(last), nouns[strings.ToLower(last)] != "":
			return base(last) // VolumeExpansion
		case gerund(first) && !kinds[rest], nouns[strings.ToLower(first)] != "":
			return "" // ProvisioningRequest and MigrationPlan are things
		}
	}
	switch {
	case v == "" && isSet(last):
		return "" // StatefulSet
	case v == "":
		return base(last)
	case !strings.EqualFold(v+rest, reason):
		return v + rest
	case len(words) > 1:
		return v // CreateCertificate: an action that equals its reason says nothing
	}
	return ""
}

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

// kinds are objects that a gerund acts on, as in ScalingReplicaSet.
var kinds = map[string]bool{
	"ReplicaSet": true, "StatefulSet": true, "DaemonSet": true, "Deployment": true, "Job": true, "Pod": true, "Pods": true, "Node": true, "Nodes": true,
	"Container": true, "Image": true, "Volume": true, "LoadBalancer": true, "Service": true, "Secret": true, "ConfigMap": true, "Certificate": true,
}

// trim removes the words that tell a result.
func trim(words []string) []string {
	for len(words) > 0 && results[strings.ToLower(words[0])] {
		words = words[1:]
	}
	for len(words) > 0 && results[strings.ToLower(words[len(words)-1])] {
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

// states are words that tell how something is, after a noun.
var states = set(`active available degraded expired healthy inactive invalid missing pending ready running unavailable unhealthy unknown`)

// observed are participles of what happens to a thing while its controller waits.
var observed = set(`attached bound connected detached disconnected elected initialized joined left lost observed registered terminated unregistered`)

var results = set(`err errs success successful successfully succeeded succeed succeeds failed fail fails failure failing
	error errors errored unable cannot could couldnt not to invalid warning done complete finished
	unsuccessful unsuccessfully skipped`)

// irregular are forms that the rules below do not produce.
var irregular = map[string]string{
	"bind": "bound", "build": "built", "choose": "chosen", "find": "found", "get": "got", "hold": "held", "lose": "lost", "make": "made",
	"read": "read", "run": "ran", "send": "sent", "set": "set", "shut": "shut", "split": "split", "write": "written", "take": "taken",
	"freeze": "frozen", "give": "given", "keep": "kept", "put": "put", "leave": "left", "reset": "reset", "withdraw": "withdrawn", "rebuild": "rebuilt",
}

// nouns are names of actions.
var nouns = map[string]string{
	"creation": "create", "deletion": "delete", "eviction": "evict", "allocation": "allocate", "validation": "validate",
	"provision": "provision", "termination": "terminate", "migration": "migrate", "reconciliation": "reconcile",
	"registration": "register", "installation": "install", "initialization": "initialize", "expansion": "expand",
	"recovery": "recover", "restoration": "restore", "rotation": "rotate", "removal": "remove", "renewal": "renew",
	"replacement": "replace", "placement": "place", "preemption": "preempt", "configuration": "configure",
	"generation": "generate", "propagation": "propagate", "activation": "activate", "deactivation": "deactivate",
	"admission": "admit", "assignment": "assign", "attachment": "attach", "authentication": "authenticate",
	"authorization": "authorize", "calculation": "calculate", "cancellation": "cancel",
	"execution": "execute", "promotion": "promote", "resolution": "resolve", "selection": "select", "suspension": "suspend",
	"synchronization": "synchronize", "verification": "verify",
	"adoption": "adopt", "unregistration": "unregister", "finalization": "finalize", "reservation": "reserve",
}

var verbs = strings.Fields(`abort accept acquire activate add adjust admit adopt aggregate allocate annotate apply approve archive assign attach
	authenticate authorize backup balance bind block bootstrap build calculate call cancel change check choose claim clean cleanup clone
	close cluster collect commit compare complete compute configure confirm connect construct convert copy cordon count create deactivate
	decode decrease decrypt delete demote deny deploy deprovision deregister deschedule destroy detach detect determine disable disconnect discover dispatch
	download drain drop elect eliminate enable encode encrypt enforce enqueue ensure evaluate evict exec execute expand export expose extend extract
	fence fetch fill finalize find flush force format forward freeze generate get give grant handle hold import increase init
	initialize inject insert inspect install interpret invalidate invoke issue join keep kill label launch leave link list load lock log lose
	make manage mark match merge migrate mirror modify monitor mount move mutate notify observe open orphan parse patch pause
	perform persist pick ping place plan populate prepare preempt prepull present probe process project promote propagate provision prune publish pull
	purge push put query quarantine queue read rebalance reboot rebuild receive reclaim reconcile reconfigure record recover recreate
	recycle redeploy reflect refresh regenerate register reject release relabel reload remediate remove rename render renew reopen replace replicate report request
	requeue rescale reschedule reserve reset resize resolve restart restore resume resync retain retrieve retry revert revoke roll
	rollback rotate route run save scale schedule seal select send serve set setup shut shutdown sign snapshot split stage start stop store
	submit suspend switch sync synchronize tag taint take teardown terminate test throttle track transfer transition trigger
	uncordon undeploy unfence uninstall unlock unmap unmount unpublish unregister unschedule unseal unset update upgrade upload use validate verify
	view wait wake watch withdraw wipe write zap`)

var forms = conjugate()

// conjugate returns the verb of each form.
func conjugate() map[string]string {
	forms := map[string]string{}
	for _, v := range verbs {
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
	for v, form := range irregular {
		forms[v], forms[form] = v, v
	}
	maps.Copy(forms, nouns)
	for w := range nounOnly {
		delete(forms, w)
	}
	return forms
}

// nounOnly are words that are more often nouns than verbs at the places where Action
// looks for verbs.
var nounOnly = set(`binding bindings claim claims cluster clusters clustered project projects uses use left views view label labels tags tag taint taints log logs
	routes route builds queue queues stage stages tests events records requests links locks plans processes report reports store
	stores counts count setting settings changes force forced matches places sets issue issues given rolls`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
