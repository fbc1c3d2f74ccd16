package api

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Look is what a caller sees of a collection, of what a selector chooses. Resolved are the partitions of
// the policy file, as the manager has found their members.
type Look[V any] func(s *resource.State, c resource.Caller, chosen resource.LabelSelector, resolved []observed.Partition) []Entry[V]

// Partitions are those that the list of partitions has for a caller, of those that a selector chooses.
func Partitions(s *resource.State, c resource.Caller, chosen resource.LabelSelector, resolved []observed.Partition) []Entry[Partition] {
	list := []Entry[Partition]{}
	for _, p := range append(s.Visible(c), DeclaredTo(s, c)...) {
		if !chosen.Chooses(p.LabelsFor(c)) {
			continue
		}
		e := Entry[Partition]{Key: p.PKey.String(), Item: func() Partition { return PartitionOf(s, c, p) }}
		if s.Partition(p.PKey) == p {
			e.Changed = s.NumberFor(c, s.TouchedFor(c, p.PKey))
			e.Mark = strconv.FormatUint(e.Changed, 10)
		} else { // of the policy file
			e.Item = func() Partition { return *DeclaredOf(s, c, p.PKey, resolved) }
			_, e.Changed = s.Object((&resource.File{}).Key())
			e.Mark = fmt.Sprint(e.Item())
		}
		list = append(list, e)
	}
	return list
}

// Tenants are those that the list of tenants has for a caller, of those that a selector chooses.
func Tenants(s *resource.State, c resource.Caller, chosen resource.LabelSelector, _ []observed.Partition) []Entry[Tenant] {
	list := []Entry[Tenant]{}
	for _, t := range s.Tenants() {
		if _, revision := s.Object(t.Key()); resource.SeesObject(c, t) && chosen.Chooses(t.Labels) {
			changed := s.NumberFor(c, revision)
			list = append(list, Entry[Tenant]{Key: t.Name, Mark: strconv.FormatUint(changed, 10), Changed: changed, Item: func() Tenant { return TenantOf(s, c, t) }})
		}
	}
	return list
}

// Texts are the server-sent events of one look, without the empty line after each; none where nothing has
// happened since the last.
func Texts[V any](w *Watch, s *resource.State, c resource.Caller, chosen resource.LabelSelector, resolved []observed.Partition, look Look[V]) (texts []string) {
	revision := s.LastFor(c)
	if w.Idle(revision) {
		return nil
	}
	for _, e := range Events(w, revision, look(s, c, chosen, resolved)) {
		data, _ := json.Marshal(e) // numbers and text
		text := fmt.Sprintf("event: %s\ndata: %s", e.Kind, data)
		if e.Kind == Bookmark {
			text = fmt.Sprintf("id: %d\n", e.Revision) + text
		}
		texts = append(texts, text)
	}
	return texts
}
