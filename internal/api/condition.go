package api

import (
	"context"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// matches is the look before a write of objects with these keys: If-Match has to name the
// revision of each, or a star. An object that the caller may not see is not there; nor
// is one that the write is about to make, for which there is no key.
func (a *api) matches(ctx context.Context, w *WriteParams, keys ...string) look {
	return func(s *resource.State) (uint64, error) {
		c, err := w.condition()
		if err != nil {
			return 0, err
		}
		for _, key := range keys {
			o, revision := s.Object(key)
			there := o != nil && resource.SeesObject(callerOf(ctx), o)
			if !there {
				revision = 0
			}
			// Every GUID is a port, with or without an owner of its own.
			kind, id, _ := cut(key)
			revision = s.NumberFor(callerOf(ctx), revision)
			if err = c.Holds(there || c.Given && kind == string(resource.KindPort), revision); err != nil {
				return 0, about(err, id)
			}
		}
		if len(keys) == 0 {
			err = c.Holds(false, 0)
		}
		return resource.Unseen, err
	}
}

// about says of which object a condition does not hold.
func about(err error, id string) error {
	if p, is := err.(*Problem); is {
		return fault(p.Status, p.Reason, p.Errors[0].Field, id+": "+p.Detail)
	}
	return err
}
