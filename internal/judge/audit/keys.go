package audit

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// keyChecks are those of the keys that guard management.
var keyChecks = []check{
	{number: 23, name: "mkey-zero", title: "A port accepts management writes without a key", severity: Critical,
		how:    "PortInfo.M_Key of end ports: 0 with M_KeyProtectBits 0. With other bits the key may be hidden: unknown",
		advice: "have the manager set an M_Key on every port", run: (*auditor).mkeyZero},
	{number: 24, name: "mkey-readable", title: "A port with an M_Key answers management reads without it", severity: Critical, profile: Tenant,
		how:    "PortInfo.M_KeyProtectBits of end ports with an M_Key: 0 (the key itself can be read) or 1 (all else can)",
		advice: "have the manager set M_KeyProtectBits to 2; then reading needs the key as well", run: (*auditor).mkeyReadable},
	{number: 25, name: "mkey-lease", title: "A port drops its M_Key when the manager is silent", severity: Medium, profile: Tenant,
		how:    "PortInfo.M_KeyLeasePeriod of end ports with an M_Key: not 0. After one wrong key and that many seconds without the manager, any host can read the key",
		advice: "set the lease to 0, and keep the master secret where the next manager finds it", run: (*auditor).mkeyLease},
	{number: 26, name: "mkey-shared", title: "Two devices have the same M_Key", severity: Critical, profile: Tenant,
		how:    "PortInfo.M_Key of end ports of different nodes; a hidden key is unknown",
		advice: "use a manager that gives each port its own key: an attacker who learns a shared key from one host controls all ports", run: (*auditor).mkeyShared},
	{number: 27, name: "mkey-weak", title: "An M_Key can be guessed", severity: High, profile: Tenant,
		how:    "PortInfo.M_Key of end ports: below 2^32, fewer than four different bytes, or a GUID of the node or an SM_Key; a hidden key is unknown",
		advice: "use random 64-bit M_Keys", run: (*auditor).mkeyWeak},
	{number: 28, name: "mkey-disclosed", title: "An M_Key was sent to an unknown device", severity: Critical,
		why: "it is visible in the packets of the manager, not in the state of devices"},
	{number: 29, name: "mkey-not-rotated", title: "A port changed tenants and kept its M_Key", severity: High, profile: Tenant, needs: needsEarlier,
		how:    "PortInfo.M_Key of hosts whose tenant keys changed since the earlier reading",
		advice: "have the manager change the M_Key when a port changes tenants: the old tenant may know it", run: (*auditor).mkeyNotRotated},
	{number: 30, name: "mkey-lost", title: "A port that had an M_Key has none", severity: High, needs: needsEarlier,
		how:    "PortInfo.M_Key of 0 with M_KeyProtectBits 0 where the earlier reading had a key",
		advice: "have the manager set it again; a device that forgets its key when it restarts is open until then", run: (*auditor).mkeyLost},
	{number: 31, name: "mkey-violations", title: "A port received management packets with a wrong M_Key", severity: High,
		how:    "PortInfo.M_KeyViolations of end ports: not 0, or grown since the earlier reading",
		advice: "look for trap 256 in the manager's log: it names the sender; clear the counter once it is explained", run: (*auditor).mkeyViolations},
	{number: 32, name: "sm-key-default", title: "A manager's SM_Key is a default or weak value", severity: Critical,
		how:    "SMInfo of each port with IsSM set: SM_Key 1, or a weak value; 0 is correct where the port has an M_Key, elsewhere unknown. The SA_Key cannot be read",
		advice: "set sm_key and sa_key to random values that differ from each other", run: (*auditor).smKeyDefault},
	{number: 33, name: "class-keys", title: "Other management classes are not protected by keys", severity: High,
		why: "vendor, congestion and other class keys are read by packets of those classes; the audit sends only SMPs"},
	{number: 34, name: "keys-at-rest", title: "Files with keys can be read by others", severity: High,
		why: "files of the manager's host are not visible on the wire"},
}

// guarded is an end port's M_Key as far as it can be known.
type guarded uint8

const (
	open   guarded = iota // there is none
	hidden                // it reads 0, and may be hidden from who does not know it
	known
)

func guardOf(p *observed.Port) guarded {
	switch {
	case p.Info.MKey != 0:
		return known
	case p.Info.MKeyProtectBits != 0:
		return hidden
	}
	return open
}

// managed calls yield for every end port in use whose PortInfo was read.
func (a *auditor) managed(yield func(p *observed.Port, key guarded)) {
	for _, p := range a.f.EndPorts() {
		if a.info(p) && (p.Num == 0 || p.Info.PortState == smp.PortArmed || p.Info.PortState == smp.PortActive) {
			yield(p, guardOf(p))
		}
	}
}

func (a *auditor) hiddenKey(p *observed.Port) {
	a.unknown(place(p), "M_Key reads 0 with M_KeyProtectBits %d: hidden from a reader without the key, or not set", p.Info.MKeyProtectBits)
}

func (a *auditor) mkeyZero() {
	a.managed(func(p *observed.Port, key guarded) {
		switch key {
		case open:
			a.found(place(p), "M_Key 0, M_KeyProtectBits 0")
		case hidden:
			a.hiddenKey(p)
		}
	})
}

func (a *auditor) mkeyReadable() {
	a.managed(func(p *observed.Port, key guarded) {
		if key != open && p.Info.MKeyProtectBits < 2 {
			a.found(place(p), "M_KeyProtectBits %d", p.Info.MKeyProtectBits)
		}
	})
}

func (a *auditor) mkeyLease() {
	a.managed(func(p *observed.Port, key guarded) {
		if l := p.Info.MKeyLeasePeriod; key != open && l != 0 {
			a.found(place(p), "M_KeyLeasePeriod %d s", l)
		}
	})
}

func (a *auditor) mkeyShared() {
	first := map[ib.MKey]*observed.Port{}
	a.managed(func(p *observed.Port, key guarded) {
		other := first[p.Info.MKey]
		switch {
		case key == hidden:
			a.hiddenKey(p)
		case key == open:
		case other == nil:
			first[p.Info.MKey] = p
		case other.Node != p.Node:
			a.found(place(p), "the same M_Key as %s", place(other))
		}
	})
}

// weakness says why a key of 64 bits can be guessed; empty when it looks
// random.
func weakness(key uint64) string {
	distinct := map[byte]bool{}
	for i := range 8 {
		distinct[byte(key>>(8*i))] = true
	}
	switch {
	case key < 1<<32:
		return "it is below 2^32"
	case len(distinct) < 4:
		return "it has fewer than four different bytes"
	}
	return ""
}

func (a *auditor) mkeyWeak() {
	smKeys := map[uint64]bool{}
	for _, p := range a.f.EndPorts() {
		smKeys[uint64(p.SMInfo.SMKey)] = p.SMInfoRead && p.SMInfo.SMKey != 0
	}
	a.managed(func(p *observed.Port, key guarded) {
		value := uint64(p.Info.MKey)
		switch weak := weakness(value); {
		case key == hidden:
			a.hiddenKey(p)
		case key == open:
		case value == uint64(p.GUID) || value == uint64(p.Node.GUID()):
			a.found(place(p), "the M_Key is the GUID of the port or of its node")
		case smKeys[value]:
			a.found(place(p), "the M_Key is also an SM_Key")
		case weak != "":
			a.found(place(p), "the M_Key can be guessed: %s", weak)
		}
	})
}

func (a *auditor) mkeyNotRotated() {
	for _, p := range a.hosts() {
		old := a.earlier(p)
		if old == nil || !a.info(p) {
			continue
		}
		now, then := tenantKeys(a.keys(p)), tenantKeys(a.earlierKeys(old))
		slices.Sort(now)
		slices.Sort(then)
		switch {
		case slices.Equal(now, then), unreadKeys(p), unreadKeys(old):
		case guardOf(p) == hidden || guardOf(old) == hidden:
			a.hiddenKey(p)
		case guardOf(p) == known && guardOf(old) == known && a.options.KeysConcealed:
			a.unknown(place(p), "the tenant keys are %v and were %v; whether the M_Key is another cannot be told from a snapshot, which has pseudonyms in place of keys", now, then)
		case guardOf(p) == known && p.Info.MKey == old.Info.MKey:
			a.found(place(p), "the M_Key is as it was; the tenant keys are %v and were %v", now, then)
		}
	}
}

func (a *auditor) mkeyLost() {
	a.managed(func(p *observed.Port, key guarded) {
		if old := a.earlier(p); old != nil && guardOf(old) != open && key == open {
			a.found(place(p), "M_Key 0, M_KeyProtectBits 0; the earlier reading had a key")
		}
	})
}

// counter holds a counter of PortInfo against the earlier reading, if there is
// one: it was not 0, or it has grown.
func (a *auditor) counter(p *observed.Port, name string, of func(*smp.PortInfo) uint16) {
	if !a.info(p) {
		return
	}
	now, then := of(&p.Info), uint16(0)
	if a.options.Earlier != nil {
		if old := a.earlier(p); old != nil {
			then = min(of(&old.Info), now)
		}
	}
	switch full := now == 0xFFFF; {
	case now > then && then > 0:
		a.found(place(p), "%s %d, %d in the earlier reading", name, now, then)
	case now > then:
		a.found(place(p), "%s %d", name, now)
	case full:
		a.unknown(place(p), "%s is at its maximum, 65535: whether it would have increased cannot be told", name)
	}
}

func (a *auditor) mkeyViolations() {
	for _, p := range a.f.EndPorts() {
		a.counter(p, "M_KeyViolations", func(i *smp.PortInfo) uint16 { return i.MKeyViolations })
	}
}

// speakers are the end ports that say a manager is behind them.
func (a *auditor) speakers() []*observed.Port {
	return slices.DeleteFunc(a.f.EndPorts(), func(p *observed.Port) bool {
		return !a.info(p) || !p.Info.CapabilityMask.Has(smp.CapIsSM) && !p.SMInfoRead
	})
}

func (a *auditor) smKeyDefault() {
	all := a.speakers()
	if len(all) == 0 {
		a.unknown("the fabric", "no port has IsSM set: no SM_Key was read")
	}
	for _, p := range all {
		weak := weakness(uint64(p.SMInfo.SMKey))
		switch {
		case !p.SMInfoRead:
			a.unknown(place(p), "SMInfo was not read")
		case p.SMInfo.SMKey == 0 && guardOf(p) == known: // kept from who is no manager
		case p.SMInfo.SMKey == 0:
			a.unknown(place(p), "SM_Key reads 0: hidden, or not set")
		case weak != "":
			a.found(place(p), "SM_Key %d can be guessed: %s", uint64(p.SMInfo.SMKey), weak)
		}
	}
}
