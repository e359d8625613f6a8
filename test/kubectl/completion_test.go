package kubectl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestCompletion runs the program as kubectl does to complete arguments: under another name.
func TestCompletion(t *testing.T) {
	namespace := apiserver.Namespace(t)
	backup := objectIn(namespace, "Backup", "nightly")
	backup.APIVersion = "example.com/v1"
	web0, web1 := objectIn(namespace, "Pod", "web-0"), objectIn(namespace, "Pod", "web-1")
	create(t, apiserver.Clientset(t), events(newEvent(namespace, "a", web0), newEvent(namespace, "b", web1), newEvent(namespace, "c", backup)), nil)
	pulled := legacyEvent("pulled", web0, "worker-3", "Tested", 1, 0)
	pulled.Source.Component = "example.com/test"
	create(t, apiserver.Clientset(t), nil, []*corev1.Event{pulled})
	program, err := build()
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "kubectl_complete-series")
	require.NoError(t, os.Symlink(program, name))

	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"po"}, []string{"pod/"}},
		{[]string{"pod/"}, []string{"pod/web-0", "pod/web-1"}},
		{[]string{"timeline", "po/web-1"}, []string{"po/web-1"}},
		{[]string{"timeline", "pods", "web"}, []string{"web-0", "web-1"}},
		{[]string{"timeline", "ba"}, []string{"backup/"}},
		{[]string{"timeline", "backup/"}, []string{"backup/nightly"}},
		{[]string{"describe", "a", ""}, []string{"b", "c", "pulled"}},
		{[]string{"--for", "pod/web-0"}, []string{"pod/web-0"}},
		{[]string{"--controller", ""}, []string{"example.com/test"}},
		{[]string{"--instance", "te"}, []string{"test-1"}},
		{[]string{"--node", ""}, []string{"worker-3"}},
		{[]string{"top", "--reason", ""}, []string{"Tested"}},
		{[]string{"top", "con"}, []string{"controllers"}},
		{[]string{"--state", ""}, []string{"Ongoing", "Unknown", "Quiet", "Finished", "Singleton"}},
		{[]string{"--group-by", ""}, []string{"owner", "reason", "node"}},
		{[]string{"--type", "W"}, []string{"Warning"}},
		{[]string{"--sort-by", "r"}, []string{"rate", "reason"}},
		{[]string{"top", "--sort-by", "l"}, []string{"loops", "last"}},
		{[]string{"timeline", "-o", "h"}, []string{"html"}},
		{[]string{"-o", "y"}, []string{"yaml"}},
		{[]string{"--context", ""}, []string{"admin"}},
		{[]string{"timel"}, []string{"timeline"}},
		{[]string{"--own"}, nil},
		{[]string{"timeline", "--own"}, []string{"--owners"}},
	} {
		args := append([]string{"--namespace=" + namespace}, test.args...)
		cmd := command(t.Context(), t, apiserver.Kubeconfig(t))
		cmd.Path, cmd.Args = name, append([]string{name, "--cache-dir=" + filepath.Join(directory, "cache")}, args...)
		out, err := cmd.Output()
		require.NoError(t, err)
		var got []string
		for _, line := range lines(string(out)) {
			if word, _, _ := strings.Cut(line, "\t"); !strings.HasPrefix(word, ":") {
				got = append(got, word)
			}
		}
		assert.Equal(t, test.want, got, test.args)
	}
}
