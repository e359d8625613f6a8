package chaos

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes an emitter of this program where it was started as one.
func TestMain(m *testing.M) {
	if variable, ok := os.LookupEnv(emitterVariable); ok {
		os.Exit(runEmitter(variable, os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}
