// Command manager has recorders of a manager of controller-runtime.
package main

import (
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	controllerruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"example.com/testdata/programs/manager/controllers"
)

func main() {
	options := controllerruntime.Options{LeaderElection: true}
	mgr, err := controllerruntime.NewManager(controllerruntime.GetConfigOrDie(), options)
	if err != nil {
		os.Exit(1)
	}
	controllers.Setup(mgr)
	other, err := manager.New(
		controllerruntime.GetConfigOrDie(),
		manager.Options{}, // of the other one
	)
	if err != nil {
		os.Exit(1)
	}
	if err := other.Start(controllerruntime.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}

// The controller creates this role for its instances.
func role() rbacv1.Role {
	return rbacv1.Role{
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
			{
				APIGroups: []string{""},
				Resources: []string{"events"},
				Verbs:     []string{"create", "patch"},
			},
		},
	}
}

// These are complete.
var complete = []rbacv1.PolicyRule{
	{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"get", "list"}},
}

var incomplete = &rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "update"}}
