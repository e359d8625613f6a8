package main

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want options
		err  string
	}{
		{want: options{duration: defaultDuration}},
		{args: []string{"--keep", "-v", "--duration=30s"}, want: options{duration: 30 * time.Second, keep: true, verbose: true}},
		{args: []string{"-duration", "3s"}, err: "-duration 3s is too short for a heartbeat; the minimum is 10s"},
		{args: []string{"keep"}, err: `unexpected argument "keep"`},
		{args: []string{"-what"}, err: "flag provided but not defined: -what"},
		{args: []string{"-h"}, err: flag.ErrHelp.Error()},
	} {
		var errOut strings.Builder
		opts, err := parseFlags(test.args, &errOut)
		assert.Equal(t, test.want, opts)
		if test.err == "" {
			require.NoError(t, err)
			assert.Empty(t, errOut.String())
			continue
		}
		require.EqualError(t, err, test.err)
		assert.Contains(t, errOut.String(), "-duration", "the usage follows")
	}
}
