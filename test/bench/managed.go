package bench

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manage makes an Event say which fields the manager has set, as the API server does for each
// create, and for each patch unless that clears metadata.managedFields.
func manage(event metav1.Object, apiVersion, manager string) {
	event.SetManagedFields(nil)
	data, err := json.Marshal(event)
	must(err)
	var fields map[string]any
	must(json.Unmarshal(data, &fields))
	metadata, _ := fields["metadata"].(map[string]any)
	fields["metadata"] = map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}
	owned, err := json.Marshal(fieldsOf(fields))
	must(err)
	now := metav1.Now()
	event.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: apiVersion, Time: &now,
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: owned},
	}})
}

// fieldsOf returns the fields of an object as FieldsV1 has them.
func fieldsOf(object map[string]any) map[string]any {
	fields := make(map[string]any)
	for name, value := range object {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			continue
		case !isObject, slices.Contains(atomicFields, name):
			inner = map[string]any{}
		default:
			if inner = fieldsOf(inner); len(inner) == 0 {
				continue
			}
			if slices.Contains(optionalFields, name) {
				inner["."] = map[string]any{}
			}
		}
		fields["f:"+name] = inner
	}
	return fields
}

var (
	atomicFields   = []string{"regarding", "related", "involvedObject"} // with one owner
	optionalFields = []string{"annotations", "labels", "series"}        // with an owner of their own
)
