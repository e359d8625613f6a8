package bench

import (
	"os"
	"testing"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Leaks)) }
