// This file reads and checks the preconditions of requests to the API: If-Match and
// If-None-Match, with revisions as ETags.

package listen

import (
	"net/http"
	"slices"
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

// ETag is the ETag of a revision.
func ETag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// Condition is the preconditions of a request. Its revisions are by the numbers by which the caller
// knows them (resource.State.NumberFor).
type Condition struct {
	match     []uint64 // If-Match: the object is one of these
	any       bool     // If-Match: *, the object is there
	unmatched []uint64 // If-None-Match: the object is none of these
	// None tells of If-None-Match: *, the object is not there.
	None bool
	// Given reports whether there is an If-Match.
	Given bool
}

// ReadCondition reads If-Match and If-None-Match; empty ones are not given.
func ReadCondition(ifMatch, ifNoneMatch string) (c Condition, err error) {
	if ifMatch != "" {
		c.Given = true
		if c.match, c.any, err = readTags("If-Match", ifMatch, false); err != nil {
			return c, err
		}
	}
	if ifNoneMatch != "" {
		if c.unmatched, c.None, err = readTags("If-None-Match", ifNoneMatch, true); err != nil {
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
			return nil, false, FieldProblem(http.StatusBadRequest, Malformed, "header."+header, `want * or ETags in quotation marks, such as "12"`)
		}
		n, err := strconv.ParseUint(bare[1:len(bare)-1], 10, 64)
		if err == nil && n != resource.Unseen && (weak || !isWeak) {
			list = append(list, n)
		}
	}
	return list, false, nil
}

// Has reports whether If-None-Match says that the caller has the object as it is at a revision.
func (c Condition) Has(revision uint64) bool { return c.None || slices.Contains(c.unmatched, revision) }

// Holds checks the condition for an object that is there at a revision, or that is not
// there. What the caller has seen is the revision.
func (c Condition) Holds(there bool, revision uint64) error {
	switch {
	case c.None && there:
		return FieldProblem(http.StatusPreconditionFailed, string(resource.Stale), "header.If-None-Match", "it exists already, last changed in revision "+strconv.FormatUint(revision, 10))
	case c.Given && !there:
		return FieldProblem(http.StatusPreconditionFailed, string(resource.Stale), "header.If-Match", "it does not exist")
	case c.Given && !c.any && !slices.Contains(c.match, revision):
		return FieldProblem(http.StatusPreconditionFailed, string(resource.Stale), "header.If-Match", "it has changed: it is at revision "+strconv.FormatUint(revision, 10)+" now")
	case there && slices.Contains(c.unmatched, revision):
		return FieldProblem(http.StatusPreconditionFailed, string(resource.Stale), "header.If-None-Match", "it is at that revision")
	}
	return nil
}

// Replaces is the condition for what replaces an object that is there.
func (c Condition) Replaces(there bool, revision uint64) error {
	if there && !c.Given && !c.None {
		return FieldProblem(http.StatusPreconditionRequired, Precondition, "header.If-Match",
			"it exists and would be replaced: read it, and give its ETag "+ETag(revision)+" as If-Match")
	}
	return c.Holds(there, revision)
}

// Returning refuses to bring members back that were removed from a partition. With
// If-Match the resource decides: the caller has seen the partition after the removal.
func (c Condition) Returning(s *resource.State, by resource.Caller, k ib.PKeyBase, list []resource.Member) error {
	if c.Given && !c.any {
		return nil
	}
	for _, m := range list {
		key := (&resource.Removed{PKey: k, Port: m.Port}).Key()
		o, revision := s.Object(key)
		if o == nil || s.Member(k, m.Port) != nil {
			continue
		}
		if own := s.Sees(by, k) && s.Owner(m.Port) == by.Tenant; !own && !resource.SeesObject(by, o) {
			continue // that it was there is not for him: he is refused, or asks, as for any other
		}
		return FieldProblem(http.StatusPreconditionRequired, Precondition, "header.If-Match",
			m.Port.String()+" was removed from "+k.String()+" in revision "+strconv.FormatUint(s.NumberFor(by, revision), 10)+
				": to bring it back, read the partition and give its ETag as If-Match")
	}
	return nil
}
