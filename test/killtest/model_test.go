package killtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// partition is a partition as the test knows it: its name, and its members by GUID, true
// for a full one.
type partition struct {
	name    string
	members map[string]bool
}

// state are the partitions by number. A state is not changed once it is made.
type state map[string]partition

func (s state) clone() state {
	out := state{}
	for k, p := range s {
		out[k] = partition{p.name, maps.Clone(p.members)}
	}
	return out
}

// String tells two states apart, and is for people.
func (s state) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%s %s:", k, s[k].name)
		for _, g := range slices.Sorted(maps.Keys(s[k].members)) {
			fmt.Fprintf(&b, " %s=%v", g, s[k].members[g])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Numbers of partitions that the test uses: firstKey, and for each further writer those behind
// the one before.
const (
	firstKey   = 0x100
	partitions = 6
)

// keysOf are the P_Keys that a host holds by a state, with that of the default partition.
func (s state) keysOf(guid string, manager bool) map[ib.PKey]bool {
	out := map[ib.PKey]bool{0x7fff: true}
	if manager {
		out = map[ib.PKey]bool{0xffff: true}
	}
	for number, p := range s {
		var base uint16
		if _, err := fmt.Sscanf(number, "0x%x", &base); err != nil {
			panic(err)
		}
		if full, member := p.members[guid]; member && full {
			out[ib.PKeyBase(base).Full()] = true
		} else if member {
			out[ib.PKeyBase(base).Limited()] = true
		}
	}
	return out
}

// change is a request that changes something, and what it makes of the state.
type change struct {
	method, path string
	body         any
	header       map[string]string
	after        state
}

// changes makes changes at random that are accepted: each changes something.
type changes struct {
	*rand.Rand
	prefix string // of idempotency keys
	writer int
	guids  []string
	serial int
}

// next is a change of a state; nil if the ETag of a partition, which is asked for where one
// is needed, cannot be had.
func (c *changes) next(now state, etag func(path string) (tag string, had bool)) *change {
	for {
		k := fmt.Sprintf("0x%04x", firstKey+c.writer*partitions+c.IntN(partitions))
		p, there := now[k]
		after := now.clone()
		out := &change{path: "/partitions/" + k, after: after, header: map[string]string{}}
		c.serial++
		out.header["Idempotency-Key"] = fmt.Sprintf("%s-%d", c.prefix, c.serial)
		switch what := c.IntN(10); {
		case !there:
			name := fmt.Sprintf("%s-p%d", c.prefix, c.serial)
			out.method, out.body = "PUT", js{"name": name}
			out.header["If-None-Match"] = "*"
			after[k] = partition{name, map[string]bool{}}
		case what == 0: // with all its members
			out.method = "DELETE"
			delete(after, k)
		case what < 7: // some join, or become full or limited: all or none
			var list []js
			for _, i := range c.Perm(len(c.guids))[:1+c.IntN(5)] {
				full := c.IntN(2) == 0
				if was, is := p.members[c.guids[i]]; is && was == full {
					continue
				}
				list = append(list, js{"port": c.guids[i], "membership": map[bool]string{true: "full", false: "limited"}[full]})
				after[k].members[c.guids[i]] = full
			}
			if len(list) == 0 {
				continue
			}
			out.method, out.path, out.body = "POST", out.path+"/members", js{"members": list}
			tag, had := etag("/partitions/" + k)
			if !had {
				return nil
			}
			out.header["If-Match"] = tag
		default: // some leave
			var list []string
			for _, g := range slices.Sorted(maps.Keys(p.members)) {
				if c.IntN(2) == 0 {
					list = append(list, g)
					delete(after[k].members, g)
				}
			}
			if len(list) == 0 {
				continue
			}
			out.method, out.path = "DELETE", out.path+"/members?port="+strings.Join(list, ",")
		}
		return out
	}
}
