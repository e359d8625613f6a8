package supply

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Everything that the packages of this module are made of, tests included, has a
// licence that a program under Apache-2.0 can come with. This needs no network, and
// `make licenses` is more thorough.
func TestLicenses(t *testing.T) {
	licenses := map[string]string{}
	for _, m := range modules(t) {
		licenses[m.Path] = licenseIn(t, m.Dir)
		assert.NotEmpty(t, licenses[m.Path], "%s: no licence that is known in %s", m.Path, m.Dir)
	}
	assert.Greater(t, len(licenses), 20)
	assert.Equal(t, "Apache-2.0", licenses["k8s.io/client-go"])
	assert.Equal(t, "MIT", licenses["github.com/stretchr/testify"])
	assert.Equal(t, "BSD-3-Clause", licenses["golang.org/x/time"])
	t.Log(licenses)
}

type module struct{ Path, Dir string }

// modules returns the modules that the packages of this one need.
func modules(t *testing.T) []module {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-json=Module", "./...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []module
	seen := map[string]bool{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct{ Module *module }
		err := decoder.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if pkg.Module != nil && !seen[pkg.Module.Path] {
			seen[pkg.Module.Path] = true
			all = append(all, *pkg.Module)
		}
	}
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying)(\.(md|txt))?$`)

// licenseIn returns the licence of the file for it in a folder, empty if there is
// none that is allowed.
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

// licenseOf returns the licence that a text is, empty if it is none that is allowed.
func licenseOf(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	has := func(parts ...string) bool {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				return false
			}
		}
		return true
	}
	switch {
	case has("gnu general public") && !has("apache license"), has("gnu lesser"), has("mozilla public"), has("server side public"), has("business source"):
		return ""
	case has("apache license", "version 2.0"):
		return "Apache-2.0"
	case has("permission is hereby granted, free of charge", `the software is provided "as is"`):
		return "MIT"
	case has("permission to use, copy, modify, and/or distribute this software"):
		return "ISC"
	case has("redistribution and use in source and binary forms", "neither the name"):
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
