// Package tags has files for other platforms and tags.
package tags

import "k8s.io/client-go/tools/record"

type controller struct{ recorder record.EventRecorder }
