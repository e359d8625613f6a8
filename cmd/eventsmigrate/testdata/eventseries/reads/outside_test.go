package reads_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"example.com/testdata/eventseries/reads"
)

func TestOutside(t *testing.T) {
	client := fake.NewClientset()
	reads.Run(t.Context(), client)
	_, _ = client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
}
