package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Conditional requests. The ETag of an object is the revision that last changed it; of
// a partition, the one that last changed it, its members, or what is remembered of
// members that were removed.
//
// A write with If-Match is refused if the object has changed since, by the same lock that
// makes the change, so that no writer comes between. Without If-Match:
//
//   - what takes away (a member, a partition, a token, a port from its tenant) is done: a
//     stale removal only narrows;
//   - what adds (a partition, members) is done, except that a port which was once removed
//     from the partition is not brought back: that takes If-Match with a revision after
//     the removal, which shows that the caller knows of it;
//   - what replaces (a partition that is there, the whole list of members, a tenant, the
//     policy file) is refused with 428: it would undo what others did meanwhile.

// etag is the ETag of a revision.
func etag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// condition is a precondition of a request.
type condition struct {
	match     []uint64 // If-Match: the object is one of these
	any       bool     // If-Match: *, the object is there
	none      bool     // If-None-Match: *, the object is not there
	unmatched []uint64 // If-None-Match: the object is none of these
	given     bool     // If-Match was given
}

func readCondition(ifMatch, ifNoneMatch string) (c condition, err error) {
	if ifMatch != "" {
		c.given = true
		if c.match, c.any, err = readTags("If-Match", ifMatch, false); err != nil {
			return c, err
		}
	}
	if ifNoneMatch != "" {
		if c.unmatched, c.none, err = readTags("If-None-Match", ifNoneMatch, true); err != nil {
			return c, err
		}
	}
	return c, nil
}

// readTags reads a list of entity tags, or a star. A weak tag, and one that is no
// revision, matches nothing in If-Match.
func readTags(header, text string, weak bool) (list []uint64, star bool, err error) {
	if strings.TrimSpace(text) == "*" {
		return nil, true, nil
	}
	list = []uint64{}
	for _, tag := range strings.Split(text, ",") {
		tag = strings.TrimSpace(tag)
		bare, isWeak := strings.CutPrefix(tag, "W/")
		if len(bare) < 2 || bare[0] != '"' || bare[len(bare)-1] != '"' {
			return nil, false, fault(http.StatusBadRequest, reasonMalformed, "header."+header, `want * or ETags in quotation marks, such as "12"`)
		}
		n, err := strconv.ParseUint(bare[1:len(bare)-1], 10, 64)
		if err == nil && n != resource.Unseen && (weak || !isWeak) {
			list = append(list, n)
		}
	}
	return list, false, nil
}

// holds checks the condition for an object that is there at a revision, or that is not
// there. What the caller has seen is the revision.
func (c condition) holds(there bool, revision uint64) error {
	switch {
	case c.none && there:
		return fault(http.StatusPreconditionFailed, string(resource.Stale), "header.If-None-Match", "it exists already, last changed in revision "+strconv.FormatUint(revision, 10))
	case c.given && !there:
		return fault(http.StatusPreconditionFailed, string(resource.Stale), "header.If-Match", "it does not exist")
	case c.given && !c.any && !contains(c.match, revision):
		return fault(http.StatusPreconditionFailed, string(resource.Stale), "header.If-Match", "it has changed: it is at revision "+strconv.FormatUint(revision, 10)+" now")
	case there && contains(c.unmatched, revision):
		return fault(http.StatusPreconditionFailed, string(resource.Stale), "header.If-None-Match", "it is at that revision")
	}
	return nil
}

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
			if err = c.holds(there || c.given && kind == string(resource.KindPort), revision); err != nil {
				return 0, about(err, id)
			}
		}
		if len(keys) == 0 {
			err = c.holds(false, 0)
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

func contains(list []uint64, n uint64) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}

// replaces is the condition for what replaces an object that is there.
func (c condition) replaces(there bool, revision uint64) error {
	if there && !c.given && !c.none {
		return fault(http.StatusPreconditionRequired, reasonPrecondition, "header.If-Match",
			"it exists and would be replaced: read it, and give its ETag "+etag(revision)+" as If-Match")
	}
	return c.holds(there, revision)
}

// returning refuses to bring members back that were removed from a partition. With
// If-Match the resource decides: the caller has seen the partition after the removal.
func (c condition) returning(s *resource.State, k ib.PKeyBase, list []resource.Member) error {
	if c.given && !c.any {
		return nil
	}
	for _, m := range list {
		key := (&resource.Removed{PKey: k, Port: m.Port}).Key()
		o, revision := s.Object(key)
		if o == nil || s.Member(k, m.Port) != nil {
			continue
		}
		return fault(http.StatusPreconditionRequired, reasonPrecondition, "header.If-Match",
			m.Port.String()+" was removed from "+k.String()+" in revision "+strconv.FormatUint(revision, 10)+
				": to bring it back, read the partition and give its ETag as If-Match")
	}
	return nil
}
