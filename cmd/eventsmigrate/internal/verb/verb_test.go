package verb

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAction(t *testing.T) {
	for reason, want := range map[string]string{
		"SuccessfulCreate":             "Create",
		"FailedToListPods":             "ListPods",
		"FailedAttachVolume":           "AttachVolume",
		"ScalingReplicaSet":            "ScaleReplicaSet",
		"ProvisioningFailed":           "Provision",
		"VolumeRecycled":               "RecycleVolume",
		"ExternalExpanding":            "Expand",
		"FailedResourceClaimCreation":  "CreateResourceClaim",
		"TaintManagerEviction":         "Evict",
		"NotDeleted":                   "Delete",
		"StatefulSet":                  "",
		"FailedStatefulSet":            "",
		"StatefulSetCreated":           "CreateStatefulSet",
		"SetCondition":                 "Set",
		"ApplyClusterRoleBindingError": "ApplyClusterRoleBinding",
		"ScaledObjectDeleted":          "DeleteScaledObject",
		"ScaledJobUnpaused":            "",
		"ScaledObjectReady":            "",
		"ScaledObjectUpdateFailed":     "UpdateScaledObject",
		"ScaledReplicaSetFailed":       "",
		"ScaledReplicaSet":             "ScaleReplicaSet",
		"Killing":                      "Kill",
		"Stopped":                      "Stop",
		"Bound":                        "Bind",
		"failed_to_create":             "Create",
		"ErrGetKeyPair":                "GetKeyPair",
		"RequestParsingError":          "ParseRequest",
		"BackupDeleted":                "DeleteBackup",
		"SyncWorkSucceed":              "SyncWork",
		"CannotRegenerateKey":          "RegenerateKey",
		"ErrUnsealFailed":              "Unseal",

		// What is before the participle is a noun, and a noun alone is no action.
		"AdmissionCheckUpdated":       "UpdateAdmissionCheck",
		"ProvisioningRequestCreated":  "CreateProvisioningRequest",
		"UpdateStrategyChanged":       "ChangeUpdateStrategy",
		"FailedEvictionPolicyApplied": "ApplyEvictionPolicy",
		"ProvisioningRequest":         "",
		"MigrationPlan":               "",
		"ScalingPolicyViolated":       "",
		"UpdateWindowElapsed":         "",
		"BackupNotFoundInStore":       "",
		"CreatedProvisioningRequest":  "CreateProvisioningRequest",

		// What is before the verb is what it acts on, unless it does something itself.
		"NodeAdding":           "AddNode",
		"NodeAddFailed":        "AddNode",
		"SlotAssignmentFailed": "AssignSlot",
		"StaleNodeForgotten":   "ForgetStaleNode",
		"LoadBalancerCreated":  "CreateLoadBalancer",
		"LoadBalancerCreation": "Create",
		"PodWasEvicted":        "Evict",
		"AutoScaled":           "Scale",
		"PodGracefullyDeleted": "Delete",
		"VolumeExpansion":      "ExpandVolume",
		"ImagePullFailed":      "PullImage",

		// What is before the participle may have happened without the controller.
		"NodesDetached":        "",
		"ClusterInitialized":   "",
		"PrimaryLost":          "",
		"DiskNotAttached":      "",
		"SuccessfullyAttached": "Attach",
		"FailedInitialized":    "Initialize",
		"DetachedVolume":       "DetachVolume",

		// The reason is an imperative.
		"CreateCertificate": "Create",
		"FencePod":          "Fence",
		"ScaleDown":         "Scale",

		// Without a verb, or nothing but the verb.
		"NodeNotReady":         "",
		"TooManySucceededPods": "",
		"SawCompletedJob":      "",
		"FailedDaemonPod":      "",
		"Sync":                 "",
		"Failed":               "",
		"":                     "",
		"---":                  "",
		"ErrorNoBackup":        "",
		"BackupPending":        "",
		"InvalidRequest":       "",
		"BackOff":              "",
		"FailingOver":          "",
		"SwitchingOver":        "",
		"FailoverTarget":       "",
	} {
		assert.Equal(t, want, Action(reason), reason)
	}
}

func TestWords(t *testing.T) {
	for name, want := range map[string][]string{
		"FailedGetHTTPRoute": {"Failed", "Get", "HTTP", "Route"},
		"PVCsBound":          {"PVCs", "Bound"},
		"two-words":          {"Two", "Words"},
		"":                   nil,
	} {
		assert.Equal(t, want, Words(name), name)
	}
}
