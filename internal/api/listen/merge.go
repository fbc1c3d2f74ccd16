// This file applies a JSON merge patch (RFC 7396) to what an object says.

package listen

import (
	"encoding/json"
	"reflect"
)

// MergePatchType is the media type of a merge patch.
const MergePatchType = "application/merge-patch+json"

// Merge applies a patch to a value: to, which gets the result, is what the patch goes over. A field that
// the patch has as null goes back to its zero value. The error says what of the result to cannot be.
func Merge(patch []byte, to any) error {
	before, err := json.Marshal(to)
	if err != nil {
		return err
	}
	var a, b any
	if err := json.Unmarshal(before, &a); err != nil {
		return err
	}
	if err := Unmarshal(patch, &b); err != nil {
		return err
	}
	merged, err := json.Marshal(apply(a, b))
	if err != nil {
		return err
	}
	v := reflect.ValueOf(to).Elem()
	v.SetZero() // what the patch took away is not in what is read
	return Unmarshal(merged, to)
}

// apply is MergePatch of RFC 7396, section 2.
func apply(target, patch any) any {
	p, is := patch.(map[string]any)
	if !is {
		return patch
	}
	out := map[string]any{}
	if t, is := target.(map[string]any); is {
		for k, v := range t {
			out[k] = v
		}
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = apply(out[k], v)
		}
	}
	return out
}
