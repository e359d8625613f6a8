// Package legacybroadcaster has what the replacements of the legacy broadcaster
// (k8s.io/client-go/tools/record) share.
package legacybroadcaster
