package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/eventseries/eventseries/events/eventstest"
)

func TestPasswordMissing(t *testing.T) {
	backup := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly"}, Data: map[string]string{"secret": "orders"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	recorder := eventstest.NewRecorder(t)
	r := &Reconciler{fake.NewClientBuilder().WithObjects(backup, secret).Build(), recorder}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(backup)})
	require.NoError(t, err)
	recorder.ExpectOnly(t, eventstest.Want{Regarding: backup, Related: secret, Reason: "PasswordMissing", Action: "CheckSecret"})
}
