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
	config, err := clientcmd.Load(data)
	require.NoError(t, err)
	for context, token := range map[string]string{"": "a", "admin": "a", "ann": "b"} {
		rest, err := clientcmd.NewNonInteractiveClientConfig(*config, context, nil, nil).ClientConfig()
		require.NoError(t, err)
		assert.Equal(t, "https://127.0.0.1:6443", rest.Host)
		assert.Equal(t, token, rest.BearerToken)
		assert.Equal(t, []byte("certificate"), rest.CAData)
	}
}
