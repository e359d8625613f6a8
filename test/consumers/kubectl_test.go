package consumers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// runsKubectl is an environment variable. If it is set, the test binary is kubectl.
const runsKubectl = "EVENTSERIES_RUN_KUBECTL"

// timeout bounds how long a test waits for a program.
const timeout = 2 * time.Minute

// mainOfKubectl is the main function of kubectl.
func mainOfKubectl() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

// kubectl returns what kubectl prints for a command such as "kubectl get events".
func kubectl(t *testing.T, namespace, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	program, err := os.Executable()
	require.NoError(t, err)
	home := t.TempDir()
	args := strings.Fields(strings.TrimPrefix(command, "kubectl "))
	args = append(args, "--kubeconfig="+apiserver.Kubeconfig(t), "--cache-dir="+home, "--namespace="+namespace)
	run := exec.CommandContext(ctx, program, args...)
	run.Env = append(os.Environ(), runsKubectl+"=1", "HOME="+home)
	var stdout, stderr bytes.Buffer
	run.Stdout, run.Stderr = &stdout, &stderr
	require.NoError(t, run.Run(), "%s: %s", command, &stderr)
	return stdout.String()
}

func TestKubectl(t *testing.T) {
	now := time.Now()
	at := func(age time.Duration) time.Time { return now.Add(-age) }
	namespaces, pods := map[string]string{}, map[string]*corev1.ObjectReference{}
	for _, sink := range sinkNames {
		namespaces[sink] = apiserver.Namespace(t)
		pod := apiserver.CreatePod(t, apiserver.Clientset(t), namespaces[sink], "web-0")
		pods[sink] = &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
		writeSeries(t, newSink(t, sink), namespaces[sink], series.ReferenceOf(pods[sink]), at)
	}

	for section, command := range map[string]string{
		"kubectl get":    "kubectl get events -L " + series.LabelState,
		"kubectl events": "kubectl events",
	} {
		text := roundAges(kubectl(t, namespaces[sinkNames[0]], command))
		assert.Equal(t, text, roundAges(kubectl(t, namespaces[sinkNames[1]], command)), "%s shows the Events of both sinks alike", command)
		requireOnPage(t, section, block(text))
	}

	node := createNode(t)
	create(t, newSink(t, sinkNames[0]), newSeries(metav1.NamespaceSystem, singleton, node, at(60*time.Minute)))
	found := [][]string{{"command", "finds"}}
	for _, command := range []string{
		"kubectl get events -l " + series.LabelState + "=" + series.Ongoing.String(),
		"kubectl get events -l " + series.LabelRelatedUID + "=" + string(claim.UID),
		"kubectl events --for persistentvolumeclaim/" + claim.Name,
		"kubectl events --for node/" + node.Name,
		"kubectl events --for node/" + node.Name + " -A",
		"kubectl describe node " + node.Name,
	} {
		found = append(found, []string{"`" + command + "`", kinds(kubectl(t, namespaces[sinkNames[0]], command))})
	}
	requireOnPage(t, "kubectl select", table(found...))

	orders := [][]string{{"command", "`EventSinkImpl`", "`CoreSink`"}}
	for _, sink := range sinkNames {
		writeLegacy(t, namespaces[sink], pods[sink], at)
	}
	for _, command := range []string{
		"kubectl get events",
		"kubectl get events --sort-by=.lastTimestamp",
		"kubectl get events --sort-by=.series.lastObservedTime",
		"kubectl events",
		"kubectl describe pod web-0",
	} {
		row := []string{"`" + command + "`"}
		for _, sink := range sinkNames {
			row = append(row, kinds(kubectl(t, namespaces[sink], command)))
		}
		orders = append(orders, row)
	}
	requireOnPage(t, "kubectl order", table(orders...))

	_, described, ok := strings.Cut(kubectl(t, namespaces[sinkNames[0]], "kubectl describe pod web-0"), "\nEvents:\n")
	require.True(t, ok)
	requireOnPage(t, "kubectl describe", block("Events:\n"+roundAges(described)))
}

// createNode returns a reference to a new Node. It deletes the Node, and the Events about
// it, when the test ends.
func createNode(t *testing.T) series.Reference {
	t.Helper()
	clients := apiserver.Clientset(t)
	node, err := clients.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-7"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := apiserver.CleanupContext()
		defer cancel()
		assert.NoError(t, clients.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{}))
		assert.NoError(t, clients.CoreV1().Events(metav1.NamespaceSystem).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(node.UID)}))
	})
	return series.Reference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
}

var minutes = regexp.MustCompile(`\b(\d+)m\b`)

// roundAges rounds the ages in text down to 20 minutes, because the test takes time.
func roundAges(text string) string {
	return minutes.ReplaceAllStringFunc(text, func(age string) string {
		n, err := strconv.Atoi(strings.TrimSuffix(age, "m"))
		if err != nil {
			return age
		}
		return fmt.Sprintf("%dm", n/20*20)
	})
}

// kinds returns which Events a program shows, in its order.
func kinds(output string) string {
	var all []string
	for line := range strings.Lines(output) {
		for reason, kind := range map[string]string{
			"Started": singleton, "SnapshotFailed": ongoing, "Throttled": finished, "BackOff": legacy,
		} {
			if strings.Contains(line, reason) {
				all = append(all, kind)
			}
		}
	}
	if all == nil {
		return "none"
	}
	return strings.Join(all, ", ")
}
