package mastership

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// voice is what the manager behind a port said last.
type voice struct {
	guid             ib.PortGUID // of the port
	info             smp.SMInfo  // without a key
	heard            bool
	at               time.Duration
	compared, moving bool
	showsKey         bool
	proves, counts   bool
	missed           int // requests since
	toldPolicy       bool
	policy           [16]byte // Vouches.PolicySum of what it told last
}

// strangersAsked is how many managers that do not count are asked at once when somebody
// wants to know of them: any number of hosts may set IsSM.
const strangersAsked = 32

// hear notes what a manager answered, or that it did not.
func (x *Peers) hear(at observed.Place, guid ib.PortGUID, info smp.SMInfo, err error) {
	v := x.voices[at]
	if v == nil || v.guid != guid {
		v = &voice{guid: guid}
		x.voices[at] = v
	}
	if err != nil {
		v.missed++
		return
	}
	r := Remote{Info: info, Address: Address{Port: guid}}
	v.proves, v.counts, v.showsKey = x.election.Proves(r), x.election.Counts(r), info.SMKey != 0
	if v.counts {
		x.meet(guid)
	}
	if x.gaveUp == guid {
		x.gaveUp = 0
	}
	info.SMKey = 0
	v.compared, v.moving = v.heard, v.heard && v.info.ActCount != info.ActCount
	v.info, v.heard, v.at, v.missed = info, true, x.clock, 0
}

// hearAt is hear of the end port with a GUID.
func (x *Peers) hearAt(guid ib.PortGUID, info smp.SMInfo, err error) {
	if i := slices.IndexFunc(x.host.Facts().Ends, func(p *observed.Port) bool { return p.GUID == guid }); guid != 0 && i >= 0 {
		x.hear(x.host.Facts().Ends[i].Place(), guid, info, err)
	}
}

// AskAll asks every manager for its state, also those that do not count, which are told
// nothing. Nothing follows but what Managers says.
func (x *Peers) AskAll() {
	if x.election == nil || x.host.Facts().Fabric == nil {
		return
	}
	if x.Named() && x.IsMaster() {
		x.Ask()
	}
	for _, p := range x.host.Facts().Ends {
		if !x.IsRival(p) {
			continue
		}
		var own smp.SMInfo
		if may, _ := x.MayCount(p); may {
			if x.Named() && x.IsMaster() {
				continue // asked above
			}
			own = x.election.InfoFor(p.GUID)
		} else if x.asking >= strangersAsked {
			continue
		}
		x.asking++
		at := Address{Path: p.Path, Port: p.GUID}
		x.askPeer(p, own, func(info smp.SMInfo, err error) {
			x.asking--
			x.askPolicyToo(Remote{Info: info, Address: at}, err)
		})
	}
}

// Asking is how many answers to AskAll are awaited.
func (x *Peers) Asking() int { return x.asking + x.round.pending }

// Managers are this manager and every other that is known, by their ports.
func (x *Peers) Managers() []observed.SubnetManager {
	f := x.host.Facts().Fabric
	if x.election == nil || f == nil {
		return nil
	}
	var out []observed.SubnetManager
	for _, p := range x.host.Facts().Ends {
		v := x.voices[p.Place()]
		if v != nil && v.guid != p.GUID {
			v = nil
		}
		m := observed.SubnetManager{
			Port: p.GUID, Node: p.Node.GUID(), Name: p.Node.Name(), Num: p.Num, LID: p.Info.LID,
			IsSM: p.InfoRead && p.Info.CapabilityMask.Has(smp.CapIsSM),
		}
		switch {
		case p == f.Self:
			own := x.election.Info()
			m.IsSM, m.Answered, m.State, m.Priority, m.Claims, m.Trust = true, true, own.SMState, own.Priority, own.GUID, observed.TrustSelf
			m.Compared, m.Moving = true, true
		case !x.IsRival(p) && (v == nil || !v.heard || v.missed > 0):
			continue
		default:
			x.describe(&m, p, v)
		}
		out = append(out, m)
	}
	return out
}

// describe enters what is known of another manager.
func (x *Peers) describe(m *observed.SubnetManager, p *observed.Port, v *voice) {
	may, why := x.MayCount(p)
	m.Trust, m.Why = observed.TrustNone, why
	if v == nil || !v.heard {
		if v != nil {
			m.Missed = v.missed
		}
		if may {
			m.Why = rogueSilent
			if slices.Contains(x.config.Election.Trusted, p.GUID) || !x.Named() {
				m.Trust, m.Why = observed.TrustListed, ""
			}
		}
		return
	}
	m.Answered, m.State, m.Priority, m.Claims = true, v.info.SMState, v.info.Priority, v.info.GUID
	m.ActCount, m.Compared, m.Moving, m.ShowsKey, m.Missed, m.Silent = v.info.ActCount, v.compared, v.moving, v.showsKey, v.missed, x.clock-v.at
	switch {
	case !x.Named() && v.counts:
		m.Trust, m.Why = observed.TrustListed, ""
	case may && v.proves:
		m.Trust, m.Why, m.Policy, m.PolicySum = observed.TrustShared, "", x.compare(v), v.policy
	case may && v.counts:
		m.Trust, m.Why = observed.TrustListed, ""
	case may:
		m.Why = rogueUnproven
	}
}

// ErrAsking says that other managers have not answered yet.
var ErrAsking = errors.New("the other managers have not answered yet")

// HandOver offers mastership to the standby at a port, or for 0 to the highest one, as an
// administrator wants it. The error is ErrAsking, or ErrNoHandover with the reason.
func (x *Peers) HandOver(now time.Duration, guid ib.PortGUID) (to ib.PortGUID, err error) {
	switch {
	case !x.Named():
		return 0, refusal("managers are not trusted by name here")
	case x.election == nil || x.round.pending > 0:
		return 0, ErrAsking
	}
	r, found := x.election.Best(x.round.here)
	if guid != 0 {
		i := slices.IndexFunc(x.round.here, func(r Remote) bool { return r.Info.GUID == guid })
		if found = i >= 0; found {
			r = x.round.here[i]
		}
	}
	if !found {
		return 0, NoStandby(x.Managers(), guid)
	}
	effects, err := x.election.HandOver(now, r, x.round.here)
	if err != nil {
		return 0, err
	}
	x.follow(effects)
	return r.Info.GUID, nil
}

// refusal is why there is no handover.
type refusal string

func (r refusal) Error() string { return ErrNoHandover.Error() + ": " + string(r) }
func (refusal) Unwrap() error   { return ErrNoHandover }

// NoStandby says why there is nobody to hand over to, of those who are known: an
// ErrNoHandover. guid is the port that was named, 0 for none.
func NoStandby(known []observed.SubnetManager, guid ib.PortGUID) error {
	var others []string
	for i := range known {
		m := &known[i]
		switch {
		case m.Trust == observed.TrustSelf || guid != 0 && m.Port != guid:
		case !m.Counts():
			others = append(others, "the manager at port "+m.Port.String()+" is not trusted: "+m.Why)
		case !m.Answered || m.Missed > 0:
			others = append(others, "the manager at port "+m.Port.String()+" does not answer")
		default:
			others = append(others, "the manager at port "+m.Port.String()+" is "+m.State.String()+", not standby")
		}
	}
	text := "there is no standby that is trusted"
	if guid != 0 {
		text = "no standby that is trusted is at port " + guid.String()
	}
	if len(others) > 0 {
		text += "; " + strings.Join(others[:min(len(others), othersMax)], "; ")
	}
	return refusal(text)
}

// othersMax is how many other managers a refusal names.
const othersMax = 4

// SteppedDown is to whom mastership was, or is being, handed over as planned, and why that
// failed; to is 0 where there was none since this manager became master last.
func (x *Peers) SteppedDown() (to ib.PortGUID, failed string) {
	if x.election == nil {
		return 0, ""
	}
	return x.election.SteppedDown()
}
