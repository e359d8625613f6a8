package main

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

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
