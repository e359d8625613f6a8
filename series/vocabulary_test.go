package series

import "strings"

// testKey makes the key with a short name. A name in upper case is a Warning.
func testKey(name string) *Key {
	k := &Key{
		Regarding:           Reference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod-" + strings.ToLower(name), UID: "uid-1"},
		Type:                "Normal",
		Action:              "Starting",
		Reason:              "Started",
		ReportingController: "example.com/controller",
		ReportingInstance:   "controller-0",
	}
	if strings.ToUpper(name) == name {
		k.Type = "Warning"
	}
	return k
}
