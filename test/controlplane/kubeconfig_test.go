package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfig(t *testing.T) {
	data, err := kubeconfig("https://127.0.0.1:6443", []byte("certificate"), []user{{name: "admin", token: "a"}, {name: "ann", token: "b"}})
	require.NoError(t, err)

	admin, err := clientcmd.RESTConfigFromKubeConfig(data)
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:6443", admin.Host)
	assert.Equal(t, "a", admin.BearerToken)
	assert.Equal(t, []byte("certificate"), admin.CAData)

	config, err := clientcmd.Load(data)
	require.NoError(t, err)
	ann, err := clientcmd.NewNonInteractiveClientConfig(*config, "ann", nil, nil).ClientConfig()
	require.NoError(t, err)
	assert.Equal(t, "b", ann.BearerToken)
}
