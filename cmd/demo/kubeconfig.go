package main

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"
)

// readKubeconfig returns how to reach the server of a kubeconfig that the
// control plane has written: the address, the certificate and a token, all in
// the file itself.
//
// Package clientcmd knows every form of a kubeconfig, but what it is made of
// would come into the go.mod that all users of the recorder get.
func readKubeconfig(path string) (*rest.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config clientcmdapi.Config
	if err := runtime.DecodeInto(clientcmdlatest.Codec, data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return nil, fmt.Errorf("%s: there is no context %q", path, config.CurrentContext)
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("%s: context %q has no cluster or no user", path, config.CurrentContext)
	}
	return &rest.Config{
		Host:            cluster.Server,
		BearerToken:     user.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: cluster.CertificateAuthorityData},
	}, nil
}
