package ufm

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// partition is a partition as UFM shows it.
type partition struct {
	Name  string  `json:"partition"`
	IPoIB bool    `json:"ip_over_ib"`
	GUIDs *[]guid `json:"guids,omitempty"`    // only with guids_data
	QoS   *qos    `json:"qos_conf,omitempty"` // only with qos_conf
	// Membership and Index0 are only those of the default partition, with guids_data.
	Membership string `json:"membership,omitempty"`
	Index0     *bool  `json:"index0,omitempty"`
}

type guid struct {
	GUID       string `json:"guid"`
	Membership string `json:"membership"`
	Index0     bool   `json:"index0"`
}

type qos struct {
	MTU  int     `json:"mtu_limit"` // KiB
	Rate float64 `json:"rate_limit"`
	SL   ib.SL   `json:"service_level"`
}

func qosOf(mtu ib.MTU, rate ib.Rate, sl ib.SL) *qos {
	return &qos{shownMTU(cmp.Or(mtu, policy.DefaultMTU)), shownRate(cmp.Or(rate, policy.DefaultRate)), sl}
}

// management is the name of the default partition.
const management = "management"

// read calls f with the state. An answer from a state that may be old says so.
func (c *call) read(f func(*resource.State)) {
	if old := c.service.Read(f); old != nil {
		c.head.Set("Warning", `110 - "Response is Stale"`)
	}
}

// numbers are the first and the last number that partitions of a caller may have; 0 for
// none.
func numbers(s *resource.State, by resource.Caller) (first, last ib.PKeyBase) {
	if by.IsProvider() {
		first, last = 1, ib.PKeyBaseDefault-1
	} else if t := s.Tenant(by.Tenant); t != nil {
		first, last = t.Keys.First, t.Keys.Last
	}
	if by.Keys.First != 0 {
		first, last = max(first, by.Keys.First), min(last, by.Keys.Last)
	}
	return first, last
}

// all reports whether a caller may see everything: a provider who is not bound to some
// partitions.
func all(by resource.Caller) bool { return by.IsProvider() && by.Keys.First == 0 }

// sees reports whether calls show a partition to a caller: to its owner and the
// provider, as far as they are not bound to others. Who has only ports in it sees it with
// the service's own interface.
func sees(s *resource.State, by resource.Caller, p *resource.Partition) bool {
	return s.Sees(by, p.PKey) && (by.IsProvider() || p.Owner == by.Tenant)
}

// seesDeclared is the same for partitions of the policy file. Everybody has the default one.
func seesDeclared(s *resource.State, by resource.Caller, k ib.PKeyBase) bool {
	return k == ib.PKeyBaseDefault || s.SeesDeclared(by, k)
}

// wanted is what a call wants to see of partitions.
type wanted struct {
	guids, qos bool
	prefix     string // of names
}

func (c *call) wanted() wanted {
	return wanted{truth(c.query.Get("guids_data")), truth(c.query.Get("qos_conf")), c.query.Get("pkey_name_prefix")}
}

// listPKeys answers GET resources/pkeys: the numbers, or with guids_data or qos_conf an
// object of partitions by number.
func (c *call) listPKeys() (any, error) {
	w := c.wanted()
	list := map[ib.PKeyBase]*partition{}
	var v *view
	if w.guids {
		var err error
		if v, err = c.view(); err != nil {
			return nil, err
		}
	}
	c.read(func(s *resource.State) {
		declared := s.Declared()
		list[ib.PKeyBaseDefault] = declaredPartition(s, c.by, declared[ib.PKeyBaseDefault], ib.PKeyBaseDefault, v, w)
		owner := c.by.Tenant
		if c.by.IsProvider() {
			owner = ""
		}
		for k, p := range declared {
			if seesDeclared(s, c.by, k) {
				list[k] = declaredPartition(s, c.by, p, k, v, w)
			}
		}
		for _, p := range s.Partitions(owner) {
			if sees(s, c.by, p) {
				list[p.PKey] = madePartition(s, p, w)
			}
		}
	})
	if w.guids || w.qos {
		out := make(map[string]*partition, len(list))
		for k, p := range list {
			if strings.HasPrefix(p.Name, w.prefix) {
				out[keyText(k)] = p
			}
		}
		return out, nil
	}
	keys := []ib.PKeyBase{}
	for k, p := range list {
		if strings.HasPrefix(p.Name, w.prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = keyText(k)
	}
	return out, nil
}

// getPKey answers GET resources/pkeys/{}. Of a partition that is not there some clients
// want 200 with {}, and ask with qos_conf; others want 404, and ask without.
func (c *call) getPKey() (any, error) {
	k, err := parseKey(c.args[0])
	if err != nil {
		return nil, err
	}
	w := c.wanted()
	var p *partition
	var declared bool
	c.read(func(s *resource.State) {
		if made := s.Partition(k); made != nil && sees(s, c.by, made) {
			p = madePartition(s, made, w)
			return
		}
		_, claimed := s.Declared()[k]
		declared = (claimed || k == ib.PKeyBaseDefault) && seesDeclared(s, c.by, k)
	})
	if declared {
		var v *view
		if w.guids {
			if v, err = c.view(); err != nil {
				return nil, err
			}
		}
		c.read(func(s *resource.State) { p = declaredPartition(s, c.by, s.Declared()[k], k, v, w) })
	}
	switch {
	case p != nil:
		return p, nil
	case w.qos:
		return nothing, nil
	}
	return nil, wrong(http.StatusNotFound, "pkey %s: there is no such partition", keyText(k))
}

// madePartition is a partition of the API. Members who still wait for somebody's consent
// are not in it.
func madePartition(s *resource.State, p *resource.Partition, w wanted) *partition {
	out := &partition{Name: p.Name, IPoIB: p.IPoIB}
	if w.guids {
		list := []guid{}
		for _, m := range s.Members(p.PKey) {
			if m.Agreed() {
				list = append(list, guid{guidText(uint64(m.Port)), shownMembership(m.Membership != policy.Limited), m.Index0})
			}
		}
		out.GUIDs = &list
	}
	if w.qos {
		out.QoS = qosOf(p.MTU, p.Rate, p.SL)
	}
	return out
}

func shownMembership(full bool) string {
	if full {
		return "full"
	}
	return "limited"
}

// declaredPartition is the default partition, or one of the policy file. Its members
// are those that the fabric holds, as far as the caller owns them: the file names them
// in words that only a resolver understands.
func declaredPartition(s *resource.State, by resource.Caller, p *policy.Partition, k ib.PKeyBase, v *view, w wanted) *partition {
	out := &partition{Name: management}
	var sl ib.SL
	var mtu ib.MTU
	var rate ib.Rate
	if p != nil {
		if sl = p.SL; k != ib.PKeyBaseDefault {
			out.Name = p.Name
		}
		if out.IPoIB = len(p.Multicast) > 0; out.IPoIB {
			mtu, rate = p.Multicast[0].MTU, p.Multicast[0].Rate
		}
	}
	if w.guids {
		list := []guid{}
		for _, m := range v.holders[k] {
			if s.SightOf(by, m.port) == resource.SightWhole {
				list = append(list, guid{guidText(uint64(m.port)), shownMembership(m.full), m.index0})
			}
		}
		out.GUIDs = &list
		if k == ib.PKeyBaseDefault {
			no := false
			out.Membership, out.Index0 = shownMembership(s.Default() == policy.Full), &no
		}
	}
	if w.qos {
		out.QoS = qosOf(mtu, rate, sl)
	}
	return out
}
