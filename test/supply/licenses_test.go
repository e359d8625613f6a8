package supply

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// released are the directories of the modules that users import or install.
var released = []string{".", "controllerruntime", "cmd/kubectl-series", "cmd/eventsmigrate"}

// Users would not get the replacement.
func TestReleasedModulesReplaceNothing(t *testing.T) {
	for _, module := range released {
		text, err := os.ReadFile(filepath.Join("..", "..", module, "go.mod"))
		require.NoError(t, err)
		assert.NotRegexp(t, `(?m)^replace`, string(text), module)
	}
}

func TestLicensesOfDependencies(t *testing.T) {
	licenses := map[string]string{}
	for _, module := range released {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}", "./...")
		cmd.Dir = filepath.Join("..", "..", module)
		out, err := cmd.Output()
		require.NoError(t, err)
		for line := range strings.Lines(string(out)) {
			module, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if strings.HasPrefix(module, "github.com/eventseries/eventseries/") {
				continue // the go command adds the license of the root to the module
			}
			if _, ok := licenses[module]; !ok {
				licenses[module] = licenseIn(t, dir)
				assert.NotEmpty(t, licenses[module], "%s: no known license in %s", module, dir)
			}
		}
	}
	assert.Greater(t, len(licenses), 20)
	assert.Equal(t, "Apache-2.0", licenses["k8s.io/client-go"])
	assert.Equal(t, "Apache-2.0", licenses["sigs.k8s.io/controller-runtime"])
	assert.Equal(t, "MIT", licenses["github.com/stretchr/testify"])
	assert.Equal(t, "BSD-3-Clause", licenses["golang.org/x/time"])
	t.Log(licenses)
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying)(\.(md|txt|mit))?$`)

// licenseIn returns the license in a directory, or "" if none is allowed.
func licenseIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		if licenseFile.MatchString(entry.Name()) {
			text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			require.NoError(t, err)
			return licenseOf(string(text))
		}
	}
	return ""
}

// licenseOf identifies the license in a text. It returns "" if the license is unknown or
// not allowed.
func licenseOf(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	text = strings.NewReplacer("“", `"`, "”", `"`).Replace(text)
	has := func(phrase string) bool { return strings.Contains(text, phrase) }
	switch {
	case has("gnu general public") && !has("apache license"):
		return ""
	case has("gnu lesser"), has("mozilla public"), has("server side public"), has("business source"):
		return ""
	case has("apache license") && has("version 2.0"):
		return "Apache-2.0"
	case has("permission is hereby granted, free of charge") && has(`the software is provided "as is"`):
		return "MIT"
	case has("permission to use, copy, modify, and/or distribute this software"):
		return "ISC"
	case has("redistribution and use in source and binary forms") && has("neither the name"):
		return "BSD-3-Clause"
	case has("redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	default:
		return ""
	}
}

func TestLicenseOf(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004": "Apache-2.0",
		"GNU GENERAL PUBLIC LICENSE Version 3":         "",
		"All rights reserved":                          "",
		"Mozilla Public License Version 2.0":           "",
	} {
		assert.Equal(t, want, licenseOf(text), text)
	}
}
