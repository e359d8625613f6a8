package fakeapi

import (
	"errors"
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// applyPatch returns a copy of event with a JSON merge patch applied. The error is
// BadRequest or Invalid.
func applyPatch(event *eventsv1.Event, patch []byte) (*eventsv1.Event, error) {
	var changes map[string]any
	err := json.Unmarshal(patch, &changes)
	if err == nil && changes == nil {
		err = errors.New("patch is null")
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	current, err := json.Marshal(event)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var object map[string]any
	if err := json.Unmarshal(current, &object); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	merged, err := json.Marshal(merge(object, changes))
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	patched := &eventsv1.Event{}
	if err := json.Unmarshal(merged, patched); err != nil {
		return nil, apierrors.NewInvalid(kind, event.Name, field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(patch), err.Error()),
		})
	}
	return patched, nil
}

// merge implements MergePatch of RFC 7386, section 2, for patches that are objects. It
// modifies target.
func merge(target, patch map[string]any) map[string]any {
	if target == nil {
		target = make(map[string]any)
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(target, name)
		case map[string]any:
			object, _ := target[name].(map[string]any) // nil if the target has no object here
			target[name] = merge(object, value)
		default:
			target[name] = value
		}
	}
	return target
}
