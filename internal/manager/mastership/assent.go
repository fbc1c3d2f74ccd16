package mastership

import (
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// assent is what managers that count have told each other: that they are not master. Who
// says so to a master writes nothing for a while (AnswerTTL).
type assent struct {
	met      map[ib.PortGUID]*met
	promised time.Duration // when this manager last said so to a master
	promises bool
}

// met is a manager that counted once. It counts for ever: one that does not answer may be
// cut off from this one only.
type met struct {
	said  bool
	asked time.Duration // the last question that was answered so, when it was asked
	under int           // questions that are open
}

// questionsMost is how many questions to one manager are open at once: each is sent a few
// times, and the next one does not wait for that.
const questionsMost = 8

// meet notes a manager that counts.
func (x *Peers) meet(guid ib.PortGUID) *met {
	m := x.assent.met[guid]
	if m == nil {
		m = new(met)
		if x.assent.met == nil {
			x.assent.met = make(map[ib.PortGUID]*met)
		}
		x.assent.met[guid] = m
	}
	return m
}

// AskOthers asks every manager that ever counted whether it is master.
func (x *Peers) AskOthers(now time.Duration) {
	if x.election == nil || x.host.Facts().Fabric == nil || !x.Named() {
		return
	}
	for _, guid := range slices.Sorted(maps.Keys(x.assent.met)) {
		m := x.assent.met[guid]
		i := slices.IndexFunc(x.host.Facts().Ends, func(p *observed.Port) bool { return p.GUID == guid })
		if i < 0 || m.under >= questionsMost {
			continue
		}
		p := x.host.Facts().Ends[i]
		if may, _ := x.MayCount(p); !may {
			continue
		}
		m.under++
		x.askPeer(p, x.election.InfoFor(guid), func(info smp.SMInfo, err error) {
			m.under--
			r := Remote{Info: info, Address: Address{Port: guid}}
			if err == nil && info.SMState != smp.SMMaster && x.election.Counts(r) {
				m.said, m.asked = true, max(m.asked, now)
			}
		})
	}
}

// AskRound begins a round of questions, where managers say who they are.
func (x *Peers) AskRound() {
	if x.Named() {
		x.Ask()
	}
}

// pingsMost is how many ports of its own node a manager on a switch tries.
const pingsMost = 8

// Ping asks the device at the other end of this manager's link who it is, without having
// anything follow from the answer; a manager on a switch asks some of its neighbours.
func (x *Peers) Ping() {
	f := x.host.Facts().Fabric
	if f == nil || f.Self == nil {
		return
	}
	ask := func(p *observed.Port) {
		x.talk.Do(transact.Request{
			Path: mad.Path{p.Num}, MKey: p.MKeyOver(), Method: mad.MethodGet, Attribute: smp.AttrNodeInfo,
		}, func(transact.Reply) {})
	}
	if f.Self.Node.Switch == nil {
		ask(f.Self)
		return
	}
	asked := 0
	for i := range f.Self.Node.Ports {
		if p := &f.Self.Node.Ports[i]; i > 0 && p.IsUp() && asked < pingsMost {
			asked++
			ask(p)
		}
	}
}

// Said is when the oldest question was asked of those in answer to which each of the others
// said last that it is not master; all is false where one has never, or where managers
// do not say who they are. Where there are no others it is a time that does not come.
func (x *Peers) Said() (asked time.Duration, all bool) {
	asked = never
	for _, m := range x.assent.met {
		if !m.said || !x.Named() {
			return 0, false
		}
		asked = min(asked, m.asked)
	}
	return asked, true
}

// never is later than any time.
const never = time.Duration(1) << 62

// Unsaid are the managers that have not said it since a time.
func (x *Peers) Unsaid(since time.Duration) (list []ib.PortGUID) {
	for guid, m := range x.assent.met {
		if !m.said || m.asked < since {
			list = append(list, guid)
		}
	}
	slices.Sort(list)
	return list
}

// Promised is when this manager last told a master that it is not master itself.
func (x *Peers) Promised() (at time.Duration, some bool) {
	return x.assent.promised, x.assent.promises
}

// notePromise notes an answer to a request, which a manager gave in this state.
func (x *Peers) notePromise(now time.Duration, p *mad.SMP, from Address, state smp.SMState) {
	var asker smp.SMInfo
	if state == smp.SMMaster || from.Port == 0 || asker.UnmarshalBinary(p.Data[:]) != nil ||
		asker.SMState != smp.SMMaster || !x.election.Counts(Remote{Info: asker, Address: from}) {
		return
	}
	x.assent.promised, x.assent.promises = now, true
}
