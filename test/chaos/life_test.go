package chaos

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// lonely returns the configuration of an emitter whose server is not there.
func lonely(t *testing.T) emitterConfig {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "http://127.0.0.1:1"}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return emitterConfig{
		Seed: 1, Kubeconfig: file, Host: "http://127.0.0.1:1", Namespace: "ns",
		Controller: "example.com/chaos", Instance: "i", Shutdown: hurriedShutdown,
	}
}

// start starts an emitter and waits until it has emitted something.
func start(t *testing.T, config emitterConfig) *life {
	t.Helper()
	l, err := startLife(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = l.cmd.Process.Kill()
		<-l.done
	})
	for batches := 0; batches < 3; batches, _ = l.progress() {
		require.True(t, until(t.Context(), time.Now().Add(tick)))
		select {
		case <-l.done:
			require.Fail(t, "it has ended", "%v: %s", l.err, &l.log)
		default:
		}
	}
	return l
}

func TestShutdownOfAnEmitterThatReachesNobody(t *testing.T) {
	l := start(t, lonely(t))
	require.NoError(t, l.stop())
	assert.Empty(t, l.account.check())
	assert.NoError(t, l.broken())
	assert.Positive(t, l.account.taken())
	assert.Equal(t, l.account.taken(), l.account.dropped())
	assert.Error(t, l.stop(), "it has ended")
	assert.Error(t, l.kill(), "it has ended")
}

func TestKillOfAnEmitter(t *testing.T) {
	l := start(t, lonely(t))
	require.NoError(t, l.kill())
	assert.False(t, l.account.ended)
	assert.Positive(t, l.account.taken())
	assert.Zero(t, l.account.flushed)
	assert.Empty(t, l.account.check())
}

func TestFlushOfAnEmitterThatReachesNobody(t *testing.T) {
	config := lonely(t)
	config.Flush, config.Patience = true, time.Second
	l := start(t, config)
	require.NoError(t, l.stop())
	require.NotEmpty(t, l.account.check())
	assert.Contains(t, l.account.check()[0], "were not flushed")
}

// Whatever becomes of this process, the emitters end with it.
func TestEmitterEndsWithItsParent(t *testing.T) {
	l := start(t, lonely(t))
	require.NoError(t, l.stdin.Close())
	<-l.done
	assert.ErrorContains(t, l.err, "exit status 3")
}

func TestEmitterThatCannotStart(t *testing.T) {
	l, err := startLife(emitterConfig{Kubeconfig: "no-such-file"})
	require.NoError(t, err)
	<-l.done
	require.Error(t, l.stop())
	require.Len(t, l.account.failures, 1)
	assert.Contains(t, l.account.failures[0], "no-such-file")
}

func TestTailKeepsBothEnds(t *testing.T) {
	var log tail
	for _, text := range []string{"begin", strings.Repeat("x", logTail), strings.Repeat("y", logTail), "end"} {
		n, err := log.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	kept := log.String()
	assert.Len(t, kept, 2*logTail)
	assert.True(t, strings.HasPrefix(kept, "beginxxx"))
	assert.True(t, strings.HasSuffix(kept, "yyyend"))
}
