package imports

// The comment describes the import below it.
import _ "k8s.io/client-go/kubernetes/scheme"

func single(d dotted) func() {
	return func() { d.Event(nil, "Normal", "Created", "a") }
}
