package imports

// The comment describes the import below it.
import _ "k8s.io/client-go/kubernetes/scheme"

func single(d dotted) func() {
	emit := d.Event
	return func() { emit(nil, "Normal", "Created", "a") }
}
