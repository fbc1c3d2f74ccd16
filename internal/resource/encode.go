package resource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// changes are the changes by Action.
var changes = func() map[string]reflect.Type {
	list := map[string]reflect.Type{}
	for _, c := range []Change{
		PutTenant{}, DeleteTenant{}, PutToken{}, DeleteToken{}, PutFile{}, PutPartition{}, DeletePartition{}, SetMembers{}, RemoveMembers{},
		AmendPartition{}, Consent{}, Refuse{}, AssignPorts{}, ReleasePorts{}, AssignPool{}, ReleasePool{}, Approve{}, Reject{}, Trim{}, Rollback{}, DrainSwitch{}, UndrainSwitch{},
	} {
		list[c.Action()] = reflect.TypeOf(c)
	}
	return list
}()

// Actions are the names of all changes.
func Actions() []string {
	list := make([]string, 0, len(changes))
	for name := range changes {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

type encodedChange struct {
	Action string          `json:"action"`
	Fields json.RawMessage `json:"fields"`
}

// EncodeChange writes a change as JSON, with its Action. The error is one of a change
// that could never be made, such as a membership that is none.
func EncodeChange(c Change) ([]byte, error) {
	fields, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Action(), err)
	}
	return json.Marshal(encodedChange{c.Action(), fields})
}

// DecodeChange reads what EncodeChange wrote. The error names an action that does not
// exist, or the field that is wrong.
func DecodeChange(data []byte) (Change, error) {
	var x encodedChange
	if err := json.Unmarshal(data, &x); err != nil {
		return nil, fmt.Errorf("change: %w", err)
	}
	t, known := changes[x.Action]
	if !known {
		return nil, fmt.Errorf("change: unknown action %q", x.Action)
	}
	v := reflect.New(t)
	if err := Unmarshal(x.Fields, v.Interface()); err != nil {
		return nil, fmt.Errorf("change %q: %w", x.Action, err)
	}
	return v.Elem().Interface().(Change), nil
}

type encodedEdit struct {
	Key    string          `json:"key"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

type encodedDiff struct {
	Edits []encodedEdit `json:"edits"`
	Words []string      `json:"words"`
	About []string      `json:"about"`
}

// EncodeDiff writes a diff as JSON.
func EncodeDiff(d Diff) ([]byte, error) {
	x := encodedDiff{Edits: []encodedEdit{}, Words: d.Words, About: d.About}
	for _, e := range d.Edits {
		y := encodedEdit{Key: e.Key}
		for _, side := range []struct {
			o  Object
			to *json.RawMessage
		}{{e.Before, &y.Before}, {e.After, &y.After}} {
			if side.o == nil {
				continue
			}
			data, err := json.Marshal(side.o)
			if err != nil {
				return nil, fmt.Errorf("object %q: %w", e.Key, err)
			}
			*side.to = data
		}
		x.Edits = append(x.Edits, y)
	}
	return json.Marshal(x)
}

// DecodeDiff reads what EncodeDiff wrote. The error names the object that is wrong.
func DecodeDiff(data []byte) (Diff, error) {
	var x encodedDiff
	if err := json.Unmarshal(data, &x); err != nil {
		return Diff{}, fmt.Errorf("diff: %w", err)
	}
	if len(x.About) > 0 && len(x.Words) != len(x.About) {
		return Diff{}, fmt.Errorf("diff: %d sentences about %d objects", len(x.Words), len(x.About))
	}
	d := Diff{Words: x.Words, About: x.About}
	seen := map[string]bool{}
	for _, y := range x.Edits {
		e, err := y.decode()
		if err != nil {
			return Diff{}, err
		}
		if seen[e.Key] {
			return Diff{}, fmt.Errorf("diff: object %q is there twice", e.Key)
		}
		seen[e.Key] = true
		d.Edits = append(d.Edits, e)
	}
	return d, nil
}

func (y encodedEdit) decode() (e Edit, err error) {
	e.Key = y.Key
	if present(y.Before) {
		if e.Before, err = Decode(y.Key, y.Before); err != nil {
			return e, err
		}
	}
	if present(y.After) {
		if e.After, err = Decode(y.Key, y.After); err != nil {
			return e, err
		}
	}
	if e.Before == nil && e.After == nil {
		return e, fmt.Errorf("diff: object %q neither before nor after", y.Key)
	}
	return e, nil
}

func present(m json.RawMessage) bool {
	return len(m) > 0 && !bytes.Equal(bytes.TrimSpace(m), []byte("null"))
}
