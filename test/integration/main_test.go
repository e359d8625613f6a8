package integration

import (
	"os"
	"testing"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func TestMain(m *testing.M) {
	if spec, ok := os.LookupEnv(replicaVariable); ok {
		os.Exit(runReplica(spec))
	}
	os.Exit(apiserver.Main(m, apiserver.Leaks))
}
