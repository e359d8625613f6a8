package main

import (
	"bytes"
	"crypto/rand"
	"encoding/csv"
	"fmt"
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
	// admin is the administrator. The first start creates its token and later ones
	// keep it, so that a kubeconfig survives a restart.
	admin user
	// tokenFile is the file for --token-auth-file.
	tokenFile string
	// serviceAccountKey is the file of the private key for ServiceAccount tokens.
	serviceAccountKey string
}

// prepareCredentials creates the credentials in dir, or loads those of the last start.
// Only the given users remain valid.
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
	// The columns are token, name, UID and groups.
	records := [][]string{{c.admin.token, adminUser, adminUser, adminGroup}}
	for _, u := range users {
		records = append(records, []string{u.token, u.name, u.name, strings.Join(u.groups, ",")})
	}
	var tokens bytes.Buffer
	err = csv.NewWriter(&tokens).WriteAll(records)
	if err == nil {
		err = writeFile(c.tokenFile, tokens.Bytes())
	}
	if err != nil {
		return credentials{}, fmt.Errorf("controlplane: token file: %w", err)
	}
	if _, err := readOrCreate(c.serviceAccountKey, keyutil.MakeEllipticPrivateKeyPEM); err != nil {
		return credentials{}, fmt.Errorf("controlplane: service account key: %w", err)
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
