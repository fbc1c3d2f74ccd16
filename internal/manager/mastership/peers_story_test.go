package mastership

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/golden"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// storyHost writes down what a manager is asked to do, and sends what it asks.
type storyHost struct {
	*rigHost
	s *story
}

func (h storyHost) Emit(e event.Event) {
	if p, is := e.(event.PhaseBegun); is {
		h.s.say("phase %s", p.Phase)
		return
	}
	h.s.say("event: %v", e)
}
func (h storyHost) Want(w Want, why string) {
	switch w {
	case WantSweep:
		h.s.say("wants a sweep: %s", why)
	case WantElection:
		h.s.say("wants an election: %s", why)
	case WantProof:
		h.s.say("restates")
	case WantProbe:
		h.s.say("probes")
	}
}
func (h storyHost) Shared(is bool) { h.s.say("shared %v", is) }
func (h storyHost) Withholds(Message) bool {
	return h.s.withholds
}
func (h storyHost) Answer(p mad.SMP, dlid ib.LID, share int) {
	if share > 1 && h.s.waiting >= 64/share {
		return
	}
	h.s.say("sends %v %v modifier %#x status %#x to %v: % x", p.Method, p.AttributeID, p.AttributeModifier, uint16(p.Status), dlid, p.Data)
}
func (h storyHost) Follow(f Effects) {
	if len(f.Send) > 0 || f.From != f.To || f.Why != "" || f.Sweep || f.Lost {
		h.s.say("follows %d messages, %v to %v, sweep %v, lost %v, former %v: %s", len(f.Send), f.From, f.To, f.Sweep, f.Lost, f.Former, f.Why)
	}
}
func (h storyHost) Fence(at observed.Place, reason string) bool {
	h.s.say("fences %v: %s", at, reason)
	return h.rigHost.Fence(at, reason)
}
func (h storyHost) Unfence(at observed.Place, reason string) {
	h.s.say("lifts the fence of %v: %s", at, reason)
	h.rigHost.Unfence(at, reason)
}
func (h storyHost) Ask(r transact.Request, then func(transact.Reply)) {
	h.s.say("asks by its own window: %v %v %#x by %v, LID %v", r.Method, r.Attribute, r.Modifier, r.Path, r.LID)
	h.s.own = append(h.s.own, func() {
		p := mad.SMP{Method: r.Method, AttributeID: r.Attribute, AttributeModifier: r.Modifier, Data: r.Data, HopCount: uint8(len(r.Path))}
		for i, n := range r.Path {
			p.InitialPath[i+1] = byte(n)
		}
		if a, some := h.s.answer(p); some {
			then(transact.Reply{SMP: &a})
		} else {
			then(transact.Reply{Err: errors.New("no answer")})
		}
	})
}

// story is a walk through everything that can happen to a manager's peers, by a seed, and what
// follows in words.
type story struct {
	*rig
	rng   *rand.Rand
	hosts []*observed.Port
	golden.Story
	step      []string
	last      map[string]string
	own, late []func() // answers
	waiting   int
	withholds bool
	rank      uint8 // of the hosts' managers
}

func (s *story) say(format string, args ...any) {
	s.step = append(s.step, fmt.Sprintf(format, args...))
}

// answer is that of a host, which refuses or proves its policy where it is asked for that.
func (s *story) answer(p mad.SMP) (mad.SMP, bool) {
	var asker smp.SMInfo
	_ = asker.UnmarshalBinary(p.Data[:])
	a, some := s.rig.answer(p)
	var info smp.SMInfo
	if some && p.AttributeID == smp.AttrSMInfo && info.UnmarshalBinary(a.Data[:]) == nil {
		info.Priority, info.ActCount = s.rank, uint32(s.now/time.Minute)
		_ = info.Encode(&a.Data)
	}
	if !some || p.AttributeID != smp.AttrSMInfo || p.AttributeModifier != policyModifier || info.UnmarshalBinary(a.Data[:]) != nil || info.SMKey == 0 {
		return a, some
	}
	digest, _ := s.policyDigest()
	sum := vouches{}.PolicySum(digest)
	if info.GUID%2 == 1 {
		sum[0]++
	}
	proof := vouches{}.Vouch(info.GUID, asker.GUID, [16]byte(p.Data[offNonce:]), sum)
	copy(a.Data[offSum:], sum[:])
	copy(a.Data[offProof:], proof[:])
	return a, true
}

// pass lets time pass, with everything that is sent written down.
func (s *story) pass(d time.Duration) {
	for late := s.late; len(late) > 0; late = s.late {
		s.late = nil
		for _, do := range late {
			do()
		}
	}
	for end := s.now + d; ; {
		s.Heard(s.now)
		s.Expire(s.now)
		s.Tick(s.now)
		s.Advance(s.now)
		var sent []string
		var p mad.SMP
		for w := s.Next(s.now, &p); w != nil; w = s.Next(s.now, &p) {
			if !slices.Contains(s.Windows(), w) || s.Window(&p) != w {
				s.Errorf("a packet of no window")
			}
			name := map[bool]string{true: "polls", false: "talks"}[w == s.polls]
			var info smp.SMInfo
			_ = info.UnmarshalBinary(p.Data[:])
			sent = append(sent, fmt.Sprintf("%s %v %v %#x by % x to %v: %v", name, p.Method, p.AttributeID, p.AttributeModifier, p.InitialPath[1:1+p.HopCount], p.DrDLID, info))
			if answer, some := s.answer(p); some && s.rng.IntN(8) == 0 {
				s.late = append(s.late, func() { w.Receive(s.now, &answer) })
			} else if some {
				w.Receive(s.now, &answer)
			}
			s.Advance(s.now)
		}
		slices.Sort(sent)
		s.step = append(s.step, sent...)
		for own := s.own; len(own) > 0; own = s.own {
			s.own = nil
			for _, do := range own {
				do()
			}
		}
		if s.now == end {
			return
		}
		due, some := s.Due(true, s.waiting == 17)
		if !some {
			due = end
		}
		s.now = min(max(due, s.now+time.Millisecond), end)
	}
}

// told is what the peers say of themselves, by name.
func (s *story) told() map[string]string {
	due, some := s.Due(true, false)
	asked, all := s.Said()
	promised, promises := s.Promised()
	to, failed := s.SteppedDown()
	out := map[string]string{
		"state": fmt.Sprint(s.State(), " ", s.IsMaster(), " ", s.Err()), "due": fmt.Sprint(due-s.now, some), "awaits": fmt.Sprint(s.Awaits()), "master": s.Master().String(),
		"said": fmt.Sprint(asked, all, s.Unsaid(0), s.Unsaid(s.now)), "promised": fmt.Sprint(promised, promises), "down": fmt.Sprint(to, failed),
		"partners": fmt.Sprint(s.HasPartners()), "asking": fmt.Sprint(s.Asking()), "rogues": fmt.Sprint(s.Rogues()),
		"stood by": fmt.Sprint(s.StoodBy, " ", s.Other), "fences": fmt.Sprint(s.fences), "counts": fmt.Sprintf("%+v", s.Counts()),
	}
	if p := s.Incumbent(); p != nil {
		out["incumbent"] = p.String()
	}
	var rivals []string
	for p, info := range s.Rivals() {
		rivals = append(rivals, fmt.Sprint(p, info))
	}
	slices.Sort(rivals)
	out["rivals"] = strings.Join(rivals, "; ")
	for _, m := range s.Managers() {
		out[fmt.Sprintf("manager %v", m.Port)] = fmt.Sprintf("%+v", m)
	}
	for i, p := range s.hosts {
		may, why := s.MayCount(p)
		out[fmt.Sprint("host ", i)] = fmt.Sprint(may, " ", why, "; rival ", s.IsRival(p), ", names ", s.Names(p), ", asked ", s.Asked(p))
		if s.election != nil {
			out[fmt.Sprint("host ", i)] += fmt.Sprint(", sharing ", s.Sharing(p.GUID), ", policy ", s.PolicyOf(p.GUID))
		}
	}
	if s.election != nil {
		out["offers"] = fmt.Sprint(s.Offers())
		info := s.Info()
		out["info"] = fmt.Sprint(info.GUID, info.Priority, info.SMState)
	}
	return out
}

// ends writes down what followed from a step.
func (s *story) ends(what string) {
	told := s.told()
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if told[name] != s.last[name] {
			s.say("= %s: %s", name, told[name])
		}
	}
	s.Add(fmt.Sprint(s.now, " ", what), strings.Join(s.step, "\n"))
	s.step, s.last = nil, told
}

// happens is one thing that happens to a manager, drawn by the seed.
func (s *story) happens() string {
	i := s.rng.IntN(len(s.hosts))
	p := s.hosts[i]
	self := s.b.Fabric.Self.GUID
	switch s.rng.IntN(22) {
	case 0, 1, 2:
		on, does := s.rng.IntN(4) > 0, behaviour(s.rng.IntN(3))
		s.says(p, on, does)
		return fmt.Sprintf("host %d says %v, does %v", i, on, does)
	case 3:
		s.states[p] = []smp.SMState{smp.SMDiscovering, smp.SMStandby, smp.SMStandby, smp.SMMaster}[s.rng.IntN(4)]
		return fmt.Sprintf("host %d is %v", i, s.states[p])
	case 4, 5, 6:
		info := smp.SMInfo{GUID: p.GUID, SMState: []smp.SMState{smp.SMStandby, smp.SMMaster}[s.rng.IntN(2)], Priority: uint8(s.rng.IntN(16))}
		if s.rng.IntN(3) > 0 {
			info.SMKey = secret(p.GUID, self)
		}
		method, control := mad.MethodGet, uint32(0)
		switch s.rng.IntN(3) {
		case 0:
			method, control = mad.MethodSet, uint32(1+s.rng.IntN(5))
		case 1:
			control = policyModifier
		}
		if s.rng.IntN(4) == 0 {
			if s.rng.IntN(4) == 0 {
				p = s.b.Fabric.Self
			}
			m := mad.SMP{BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnLID, Method: method, AttributeID: smp.AttrSMInfo, AttributeModifier: control}
			_ = info.Encode(&m.Data)
			s.Receive(s.now, &m, p.Info.LID)
			return fmt.Sprintf("%v asks by its LID: %v %#x %+v", p, method, control, info)
		}
		s.asks(p, info, method, control)
		return fmt.Sprintf("host %d asks: %v %#x %+v", i, method, control, info)
	case 7:
		s.Recheck(p)
		return fmt.Sprintf("recheck of host %d", i)
	case 8:
		s.LookFor(p)
		s.LookFor(s.b.Fabric.Self)
		s.LookFor(nil)
		return fmt.Sprintf("a look at host %d", i)
	case 9:
		return fmt.Sprint("a question: ", s.AskAgain(), " rounds")
	case 10:
		s.AskAll()
		return "all are asked"
	case 11:
		s.AskOthers(s.now)
		return "the others are asked"
	case 12:
		s.Ping()
		s.AskRound()
		return "a ping, and a round"
	case 13:
		s.RecheckAll()
		return "recheck of all"
	case 14:
		to := ib.PortGUID(0)
		if s.rng.IntN(2) == 0 {
			to = p.GUID
		}
		guid, err := s.HandOver(s.now, to)
		return fmt.Sprint("handover to ", to, ": ", guid, " ", err)
	case 15:
		return s.changes(i, p)
	case 16:
		s.Act()
		s.waiting, s.withholds, s.rank = 15+s.rng.IntN(3), s.rng.IntN(3) == 0, uint8(s.rng.IntN(3)*5)
		return fmt.Sprint(s.waiting, " packets wait, withholds ", s.withholds, ", ranks ", s.rank)
	case 17, 18:
		s.Close()
		s.Begin(s.now)
		s.pass(10 * time.Millisecond)
		fallthrough
	default:
		var why string
		var master bool
		if s.Named() {
			why, master = s.Decide(s.now)
		} else {
			why, master = s.DecideBelieved(s.now)
		}
		return fmt.Sprint("decides: ", why, " ", master)
	}
}

// changes is one thing that changes in the subnet, or in what the manager has.
func (s *story) changes(i int, p *observed.Port) string {
	switch s.rng.IntN(10) {
	case 8:
		lid := &s.b.Fabric.Self.Info.LID
		if s.rng.IntN(2) == 0 {
			lid = &p.Info.LID
		}
		was := *lid
		if *lid = 0; was == 0 {
			*lid = ib.LID(60 + i)
		}
		return fmt.Sprint("a LID was ", was)
	case 9:
		s.b.Fabric.Self.Info.MasterSMLID = p.Info.LID
		return fmt.Sprintf("the port of this manager has host %d for its master", i)
	case 0:
		p.GUID ^= 0x1000
		return fmt.Sprintf("host %d has another GUID, %v", i, p.GUID)
	case 1:
		twin := s.hosts[(i+1)%len(s.hosts)]
		p.GUID = twin.GUID
		return fmt.Sprintf("host %d has the GUID of the next", i)
	case 2:
		p.Reached, p.InfoRead = !p.Reached, !p.InfoRead
		return fmt.Sprintf("host %d is reached: %v", i, p.Reached)
	case 3:
		if s.list = nil; s.rng.IntN(2) == 0 {
			s.list = &cables.List{}
		}
		return fmt.Sprint("a list of cables: ", s.list != nil)
	case 4:
		s.rules.Numbers = map[string]ib.PKeyBase{"red": ib.PKeyBase(2 + s.rng.IntN(2))}
		return fmt.Sprint("partitions have numbers ", s.rules.Numbers)
	case 5:
		if s.rules.Policy != nil {
			s.rules.Policy = nil
		} else {
			s.rules.Policy = &policy.Policy{}
		}
		return fmt.Sprint("there is a policy: ", s.rules.Policy != nil)
	case 6:
		s.Keep(s.Rivals())
		s.Settle(s.now)
		return "the answers are kept, and it has its place"
	default:
		s.Mute()
		return "mute"
	}
}

// TestStory compares what follows from what happens to a manager's peers, by profile, with what
// followed when the files below testdata were written. Nothing random decides: the seeds are fixed.
func TestStory(t *testing.T) {
	for seed, x := range []struct {
		name   string
		master bool // there is one
		change func(*Config)
	}{
		{"strict", false, func(*Config) {}},
		{"tenant", false, func(c *Config) { c.Profile, c.Vouches = protect.Tenant, vouches{} }},
		{"newcomer", true, func(c *Config) { c.Newcomer, c.Election.Priority, c.Vouches = true, 1, vouches{} }},
		{"listed", false, func(c *Config) { c.Election.Key, c.Newcomer = nil, true }},
		{"believed", false, func(c *Config) { c.Profile, c.Election.Key, c.Election.Trusted = protect.None, nil, nil }},
		{"outranked", true, func(c *Config) { c.Election.Priority, c.Vouches = 0, vouches{} }},
		{"outranks", true, func(c *Config) { c.Election.Priority, c.Vouches, c.Election.MasterTimeout = 15, vouches{}, time.Second }},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := strict()
			c.Seed = [32]byte{byte(seed)}
			r, hosts := newRig(t, c, 4)
			s := &story{rig: r, rng: rand.New(rand.NewPCG(uint64(seed), 27)), hosts: hosts, rank: 5}
			c.Limits, c.Election.Trusted, r.rules.Policy = transact.DefaultLimits(), []ib.PortGUID{hosts[0].GUID}, &policy.Policy{}
			x.change(&c)
			if x.master {
				r.states[hosts[1]] = smp.SMMaster
			}
			r.Peers = New(c, storyHost{(*rigHost)(r), s})
			s.asks(hosts[1], smp.SMInfo{GUID: hosts[1].GUID, SMState: smp.SMMaster}, mad.MethodGet, 0)
			s.AskAll()
			s.Act()
			s.pass(time.Second)
			s.ends("before the manager has a port")
			for _, p := range hosts[:2] {
				s.says(p, true, partner)
			}
			r.Placed(r.b.Fabric.Self.GUID)
			r.Placed(cmp.Or(hosts[0].GUID, 1))
			s.ends("it has its port")
			r.Begin(s.now)
			s.pass(time.Second)
			s.ends("begin")
			for range 160 {
				what := s.happens()
				s.ends(what)
				d := time.Duration(s.rng.IntN(1500)) * time.Millisecond
				s.pass(d)
				s.ends("time passes")
			}
			s.Check(t, "story/"+x.name+".txt")
		})
	}
}
