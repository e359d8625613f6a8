package apiserver

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PriorityLevel returns a priority level without a queue: it rejects requests while all
// of its seats are taken.
func PriorityLevel(name string, shares int32) *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: &shares,
				LendablePercent:          new(int32(0)),
				BorrowingLimitPercent:    new(int32(0)),
				LimitResponse:            flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}
}

// FlowSchema returns a FlowSchema that routes all requests of a subject to the priority
// level with the same name.
func FlowSchema(name string, subject flowcontrolv1.Subject) *flowcontrolv1.FlowSchema {
	all := []string{flowcontrolv1.APIGroupAll} // "*", which matches other fields too
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: name},
			MatchingPrecedence:         100,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{subject},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{
					{Verbs: all, APIGroups: all, Resources: all, Namespaces: all, ClusterScope: true},
				},
			}},
		},
	}
}
