package resource

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// changes are the changes by Action.
var changes = func() map[string]reflect.Type {
	list := map[string]reflect.Type{}
	for _, c := range []Change{
		PutTenant{}, DeleteTenant{}, PutToken{}, DeleteToken{}, PutFile{}, PutPartition{}, DeletePartition{}, SetMembers{}, RemoveMembers{},
		AmendPartition{}, Consent{}, Refuse{}, AssignPorts{}, ReleasePorts{}, MovePorts{}, OfferPorts{}, AssignPool{}, ReleasePool{}, ReturnPorts{}, Approve{}, Reject{}, Trim{}, Rollback{}, DrainSwitch{}, UndrainSwitch{}, AcknowledgeAlarm{},
	} {
		list[c.Action()] = reflect.TypeOf(c)
	}
	return list
}()

// Actions are the names of all changes.
func Actions() []string { return slices.Sorted(maps.Keys(changes)) }

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
	if err := UnmarshalStored(x.Fields, v.Interface()); err != nil {
		return nil, fmt.Errorf("change %q: %w", x.Action, err)
	}
	return v.Elem().Interface().(Change), nil
}
