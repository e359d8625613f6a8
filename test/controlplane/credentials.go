package main

import (
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

// credentials are what the API server needs to authenticate users.
type credentials struct {
	// users begin with the administrator. Its token is a hash of the service account key,
	// so a kubeconfig survives a restart.
	users []user
	// tokenFile is the file for --token-auth-file.
	tokenFile string
	// serviceAccountKey is the file of the private key for ServiceAccount tokens.
	serviceAccountKey string
}

// prepareCredentials creates the credentials in dir, or loads those of the last start.
// Only the given users remain valid.
func prepareCredentials(dir string, users []user) (credentials, error) {
	c := credentials{
		tokenFile:         filepath.Join(dir, "tokens.csv"),
		serviceAccountKey: filepath.Join(dir, "service-account.key"),
	}
	key, _, err := keyutil.LoadOrGenerateKeyFile(c.serviceAccountKey)
	if err != nil {
		return credentials{}, fmt.Errorf("controlplane: service account key: %w", err)
	}
	token := fmt.Sprintf("%x", sha256.Sum256(key))
	c.users = append([]user{{name: "admin", token: token, groups: []string{"system:masters"}}}, users...)
	// The columns are token, name, UID and groups.
	var records [][]string
	for _, u := range c.users {
		records = append(records, []string{u.token, u.name, u.name, strings.Join(u.groups, ",")})
	}
	file, err := os.OpenFile(c.tokenFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(csv.NewWriter(file).WriteAll(records), file.Close())
	}
	if err != nil {
		return credentials{}, fmt.Errorf("controlplane: token file: %w", err)
	}
	return c, nil
}

// kubeconfig returns a kubeconfig for the server at host. It has a context for each
// user; that of the first user is the current one.
func kubeconfig(host string, ca []byte, users []user) ([]byte, error) {
	const cluster = "eventseries"
	c := clientcmdapi.NewConfig()
	c.Clusters[cluster] = &clientcmdapi.Cluster{Server: host, CertificateAuthorityData: ca}
	for _, u := range users {
		c.AuthInfos[u.name] = &clientcmdapi.AuthInfo{Token: u.token}
		c.Contexts[u.name] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: u.name, Namespace: "default"}
	}
	c.CurrentContext = users[0].name
	return clientcmd.Write(*c)
}
