package hostile

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// The broadcaster of this package stays on the core group.
func TestCoreEvents(t *testing.T) {
	_, _ = fake.NewClientset().CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
}
