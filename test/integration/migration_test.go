package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/test/docs/after"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// The migration page shows how a program changes, and which commands show on a cluster
// that the move succeeded.
func TestMigratedProgram(t *testing.T) {
	t.Parallel()
	namespace, admin := apiserver.Namespace(t), apiserver.Config(t)
	clients, account := apiserver.ClientsetFor(t, admin), accountIn(namespace)
	account.grant(t, clients, mayWrite)
	cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nightly", UID: "uid-of-nightly"}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nightly-1", UID: "uid-of-nightly-1"}}
	for range 3 {
		require.NoError(t, after.RunStructured(t.Context(), account.config(admin), cronJob, job))
	}
	list, err := clients.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, "nightly-1", list.Items[0].Related.Name)
	assert.EqualValues(t, 3, list.Items[0].Series.Count)

	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skipf("kubectl is not installed: %v", err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "migration.md"))
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```sh\n(kubectl auth .*?)```").FindSubmatch(page)
	require.NotNil(t, block)
	commands := strings.Split(strings.TrimSpace(string(block[1])), "\n")
	want := []string{"(?m)^yes", "(?m)^yes", "nightly.*created job nightly-1", `ScheduleReached +3 +Ongoing`, `verb="PATCH"`}
	require.Len(t, commands, len(want))
	for i, command := range commands {
		command = strings.NewReplacer("system:serviceaccount:backup-system:backup-controller", account.user(), "-n shop", "-n "+namespace).Replace(command)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+apiserver.Kubeconfig(t))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", command, out)
		assert.Regexp(t, want[i], string(out), command)
	}
}
