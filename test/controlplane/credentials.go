package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/csv"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
)

const (
	adminUser  = "admin"
	adminGroup = "system:masters"
)

// credentials is what the API server recognises callers by, and signs with.
type credentials struct {
	// admin may do everything. Its token is made at the first start and kept,
	// so that a kubeconfig survives a restart.
	admin user
	// tokenFile is for --token-auth-file.
	tokenFile string
	// serviceAccountKey is the file of the private key that signs
	// ServiceAccount tokens.
	serviceAccountKey string
}

// prepareCredentials makes the credentials in dir, or reads those of an earlier
// start. users are those of this start: earlier ones are forgotten.
func prepareCredentials(dir string, users []user) (credentials, error) {
	token, err := readOrCreate(filepath.Join(dir, "admin-token"), func() ([]byte, error) {
		return []byte(rand.Text()), nil
	})
	if err != nil {
		return credentials{}, fmt.Errorf("controlplane: administrator's token: %w", err)
	}
	c := credentials{
		admin:             user{name: adminUser, token: string(token), groups: []string{adminGroup}},
		tokenFile:         filepath.Join(dir, "tokens.csv"),
		serviceAccountKey: filepath.Join(dir, "service-account.key"),
	}
	tokens, err := tokenFile(append([]user{c.admin}, users...))
	if err != nil {
		return credentials{}, fmt.Errorf("controlplane: token file: %w", err)
	}
	if err := writeFile(c.tokenFile, tokens); err != nil {
		return credentials{}, fmt.Errorf("controlplane: token file: %w", err)
	}
	if _, err := readOrCreate(c.serviceAccountKey, newPrivateKey); err != nil {
		return credentials{}, fmt.Errorf("controlplane: service account key: %w", err)
	}
	return c, nil
}

// tokenFile returns the users in the format of --token-auth-file: token, name,
// uid and, in one column, the groups.
func tokenFile(users []user) ([]byte, error) {
	var buf bytes.Buffer
	w := csv.NewWriter(&buf)
	for _, u := range users {
		if err := w.Write([]string{u.token, u.name, u.name, strings.Join(u.groups, ",")}); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return buf.Bytes(), w.Error()
}

func newPrivateKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
