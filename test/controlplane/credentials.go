package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

const (
	adminUser  = "admin"
	adminGroup = "system:masters"
)

// credentials are what the API server needs to authenticate users.
type credentials struct {
	// admin is the administrator. Its token is a hash of the service account key, so a
	// kubeconfig survives a restart.
	admin user
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
	c.admin = user{name: adminUser, token: token, groups: []string{adminGroup}}
	// The columns are token, name, UID and groups.
	var records [][]string
	for _, u := range append([]user{c.admin}, users...) {
		records = append(records, []string{u.token, u.name, u.name, strings.Join(u.groups, ",")})
	}
	var tokens bytes.Buffer
	err = csv.NewWriter(&tokens).WriteAll(records)
	if err == nil {
		err = os.WriteFile(c.tokenFile, tokens.Bytes(), 0o600)
	}
	if err != nil {
		return credentials{}, fmt.Errorf("controlplane: token file: %w", err)
	}
	return c, nil
}

// clusterName is the name of the cluster in the kubeconfig.
const clusterName = "eventseries"

// kubeconfig returns a kubeconfig for the server at host. It has a context for each
// user; that of the first user is the current one.
func kubeconfig(host string, ca []byte, users []user) ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters[clusterName] = &clientcmdapi.Cluster{Server: host, CertificateAuthorityData: ca}
	for _, u := range users {
		c.AuthInfos[u.name] = &clientcmdapi.AuthInfo{Token: u.token}
		c.Contexts[u.name] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: u.name, Namespace: "default"}
	}
	c.CurrentContext = users[0].name
	data, err := clientcmd.Write(*c)
	if err != nil {
		return nil, fmt.Errorf("controlplane: kubeconfig: %w", err)
	}
	return data, nil
}
