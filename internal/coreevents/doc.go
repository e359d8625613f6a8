// Package coreevents knows Events as core/v1 has them: it converts between the two
// groups that Events are shown in, and writes Events through the older one. Package
// compat offers it to users; package events has a name of client-go's that needs it
// and may not import compat.
package coreevents
