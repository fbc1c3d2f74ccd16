package sweep

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Keys decides which M_Keys requests carry. The device at the other end of a cable sees
// what is sent over it, and its identity is unknown before it answers: so keys are
// selected by the place that they are sent to.
type Keys interface {
	// Behind lists the keys that may be sent to the other end of the cable of a port, the
	// likeliest first; nil stands for the manager's own port.
	Behind(from *observed.Port) []ib.MKey
	// Of lists the keys that an end port may be shown that was found at the other
	// end of the cable of from: none when it does not belong there.
	Of(p, from *observed.Port) []ib.MKey
}

// askWho asks for NodeInfo: with the likeliest key first, and when that brings
// no answer, with all and with none at once. then gets the first answer
// and the key that brought it.
func (d *Discovery) askWho(path mad.Path, from *observed.Port, then func(ib.MKey, transact.Reply)) {
	first := d.behind(from)[0]
	d.askWith(path, []ib.MKey{first}, func(key ib.MKey, r transact.Reply) {
		// A standby may have heard meanwhile of a key that the master has just given, and a device
		// that was mute may answer to the first by now.
		if keys := d.behind(from); errors.Is(r.Err, transact.ErrNoAnswer) && len(keys) > 1 {
			d.askWith(path, keys, then)
			return
		}
		then(key, r)
	})
}

// behind lists the keys that may be sent to the other end of a cable, the likeliest first; none,
// which is 0, is the last.
func (d *Discovery) behind(from *observed.Port) []ib.MKey {
	if d.options.Keys == nil {
		return []ib.MKey{d.options.MKey}
	}
	return append(slices.Clone(d.options.Keys.Behind(from)), 0)
}

// otherKey is the key with which an end port is asked once more that did not answer to one: the
// one that it was found to have since, or another that it may be shown, which a standby may have
// heard of meanwhile. It is the same where there is none.
func (d *Discovery) otherKey(p *observed.Port, used ib.MKey) ib.MKey {
	if p.Key != used || d.options.Keys == nil {
		return p.Key
	}
	for _, key := range d.options.Keys.Of(p, p.Via) {
		if key != used {
			return key
		}
	}
	return used
}

func (d *Discovery) askWith(path mad.Path, keys []ib.MKey, then func(ib.MKey, transact.Reply)) {
	open, ended := len(keys), false
	for _, key := range keys {
		d.get(path, key, observed.RespTimeAssumed.Duration(), smp.AttrNodeInfo, 0, func(r transact.Reply) {
			open--
			if ended || errors.Is(r.Err, transact.ErrNoAnswer) && open > 0 {
				return
			}
			ended = true
			then(key, r)
		})
	}
}

// keysOf lists the keys to try on an end port, the one first that it answered to,
// and enters that one. From here on nothing goes there that is not among them.
func (d *Discovery) keysOf(p, from *observed.Port, answered ib.MKey) []ib.MKey {
	p.Via = from
	if d.options.Keys == nil {
		p.Key = d.options.MKey
		return nil
	}
	keys := slices.Clone(d.options.Keys.Of(p, from))
	if i := slices.Index(keys, answered); i > 0 {
		keys[0], keys[i] = keys[i], keys[0]
	}
	keys = append(keys, 0)
	p.Key = keys[0]
	return keys[1:]
}

// readEnd reads PortInfo of an end port until it shows which key is in force, or no more
// are to be tried; a requester with the wrong one reads 0 there, or gets no answer.
func (d *Discovery) readEnd(p *observed.Port, keys []ib.MKey, then func()) {
	d.get(p.Path, p.Key, p.RespTime(), smp.AttrPortInfo, 0, func(r transact.Reply) {
		err := r.Err
		if errors.Is(err, transact.ErrNoAnswer) && len(keys) > 0 {
			p.Key = keys[0]
			d.readEnd(p, keys[1:], then)
			return
		}
		if err == nil {
			err = p.Absorb(smp.AttrPortInfo, 0, r.SMP.Data[:])
		}
		switch {
		case err != nil:
			d.fault(p, fmt.Errorf("PortInfo: %w", err))
			return
		case d.options.Keys == nil:
		case p.Info.MKey != 0:
			p.Key = p.Info.MKey
		case p.Info.MKeyProtectBits == 0 || len(keys) == 0:
			p.Key = 0
		default:
			p.Key = keys[0]
			d.readEnd(p, keys[1:], then)
			return
		}
		if p.Unlocks(smp.AttrPortInfo, p.PortInfoBlock(), p.PortInfoBlock()) {
			d.read(p, smp.AttrPortInfo, p.PortInfoBlock(), then)
			return
		}
		then()
	})
}

// noteCables notes over which cables the key of the agent at the other end may go.
func (d *Discovery) noteCables() {
	for _, n := range d.fabric.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil {
				p.Leads = Leads(d.options.Keys, p)
			}
		}
	}
}

// Leads reports whether requests over the cable of p may carry the key of the
// agent at its other end. keys may be nil.
func Leads(keys Keys, p *observed.Port) bool {
	a := p.Peer.Agent()
	return keys == nil || a.Via == p || a.Key == 0 || slices.Contains(keys.Of(a, p), a.Key)
}
