package mkey

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// form is a Book as it is written to a file.
type form struct {
	Version int         `json:"version"`
	Used    []usedForm  `json:"used"`
	Ports   []standForm `json:"ports"`
}

type usedForm struct {
	Node       string     `json:"node_guid"`
	Port       string     `json:"port_guid"`
	Generation Generation `json:"generation"`
}

type standForm struct {
	Node    string     `json:"node_guid"`
	Port    string     `json:"port_guid"`
	Current Generation `json:"current,omitempty"`
	Next    Generation `json:"next,omitempty"`
	// Places are "NODE_GUID:PORT", or "self" for the manager's own port; the number after
	// a slash is the rank among the entries there, when not 0.
	Places []string `json:"behind"`
}

const (
	formVersion = 1
	selfPlace   = "self"
)

func compareIDs(a, b ID) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Node, b.Node))
}

func compareEntries(a, b *Entry) int {
	return cmp.Or(compareIDs(a.ID, b.ID), slices.CompareFunc(a.Places, b.Places, observed.Place.Compare))
}

// MarshalJSON writes generations and places, and no key.
func (b *Book) MarshalJSON() ([]byte, error) {
	f := form{Version: formVersion, Used: []usedForm{}, Ports: []standForm{}}
	for _, id := range slices.SortedFunc(maps.Keys(b.used), compareIDs) {
		f.Used = append(f.Used, usedForm{id.Node.String(), id.Port.String(), b.used[id]})
	}
	for _, s := range b.Entries() {
		x := standForm{Node: s.ID.Node.String(), Port: s.ID.Port.String(), Current: s.Current, Next: s.Next}
		for _, at := range s.Places {
			text := selfPlace
			if at != (observed.Place{}) {
				text = at.String()
			}
			if rank := slices.Index(b.at[at], s); rank > 0 {
				text += "/" + strconv.Itoa(rank)
			}
			x.Places = append(x.Places, text)
		}
		f.Ports = append(f.Ports, x)
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads what MarshalJSON wrote; anything else is an error, and
// leaves the book as it was.
func (b *Book) UnmarshalJSON(data []byte) error {
	var f form
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if f.Version != formVersion {
		return fmt.Errorf("version %d, want %d", f.Version, formVersion)
	}
	out := Book{used: make(map[ID]Generation), at: make(map[observed.Place][]*Entry), ids: make(map[ID][]*Entry)}
	if len(f.Used) > maxIDs {
		return ErrFull
	}
	for _, u := range f.Used {
		id, err := parseID(u.Node, u.Port)
		if err != nil {
			return err
		}
		out.used[id] = u.Generation
	}
	ranks := make(map[observed.Place]map[int]*Entry)
	for _, x := range f.Ports {
		id, err := parseID(x.Node, x.Port)
		if err != nil {
			return err
		}
		s := &Entry{ID: id, Current: x.Current, Next: x.Next}
		if s.Wanted() == 0 || s.Wanted() > out.used[id] || len(x.Places) == 0 || len(x.Places) > placesPerEntry {
			return fmt.Errorf("port %s: %w", x.Port, errBook)
		}
		out.ids[id] = append(out.ids[id], s)
		for _, text := range x.Places {
			at, rank, err := parsePlace(text)
			if err != nil {
				return fmt.Errorf("port %s: %w", x.Port, err)
			}
			if ranks[at] == nil {
				ranks[at] = make(map[int]*Entry)
			}
			if ranks[at][rank] != nil {
				return fmt.Errorf("place %q has two ports of rank %d", text, rank)
			}
			ranks[at][rank] = s
			s.Places = append(s.Places, at)
		}
	}
	for at, byRank := range ranks {
		for _, rank := range slices.Sorted(maps.Keys(byRank)) {
			out.at[at] = append(out.at[at], byRank[rank])
		}
	}
	version := b.version
	*b = out
	b.version = version + 1
	return nil
}

func parseID(node, port string) (id ID, err error) {
	if id.Node, err = ib.ParseNodeGUID(node); err == nil {
		id.Port, err = ib.ParsePortGUID(port)
	}
	return id, err
}

func parsePlace(text string) (at observed.Place, rank int, err error) {
	bad := fmt.Errorf("place %q: want self, or a node GUID, a colon and a port number", text)
	if before, after, ok := strings.Cut(text, "/"); ok {
		if rank, err = strconv.Atoi(after); err != nil || rank < 1 || rank >= entriesPerPlace {
			return at, 0, bad
		}
		text = before
	}
	if text == selfPlace {
		return observed.Place{}, rank, nil
	}
	if at, err = observed.ParsePlace(text); err != nil || at.Node == 0 {
		return observed.Place{}, 0, bad
	}
	return at, rank, nil
}
