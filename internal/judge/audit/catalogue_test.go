package audit

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// fixture is a small change of the good fabric that a check has to find.
type fixture struct {
	name   string
	mutate func(*site)
	where  string // part of the finding's place
	read   string // part of what it says
	// unknown reports whether the check can only say that it does not know.
	unknown bool
}

// fixtures holds at least one for every check that can be made.
var fixtures = map[string][]fixture{
	"default-full": {
		{"a host", func(s *site) { last(s.hosts[3], 0xFFFF) }, "h3", "0xffff", false},
		{"a host, without a policy", func(s *site) { s.intent.Partitions = nil; last(s.hosts[3], 0xFFFF) }, "h3", "0xffff", false},
	},
	"tenants-joined": {
		{"one key", func(s *site) { last(s.hosts[0], blue.Limited()) }, "0x", "0x0102", false},
		{"stopped by its switch", func(s *site) { subnettest.SetPKeys(s.hosts[0], append(keysOf(s.hosts[0]), blue.Full())...) }, "0x", "stopped", false},
	},
	"enforcement-off": {
		{"inbound", func(s *site) { s.hosts[2].Peer.Info.PartitionEnforcementInbound = false }, "leaf0:3", "Inbound 0", false},
		{"outbound", func(s *site) { s.hosts[2].Peer.Info.PartitionEnforcementOutbound = false }, "leaf0:3", "Outbound 0", false},
	},
	"enforcement-incapable": {
		{"no table", func(s *site) { s.leaf[1].Switch.Info.PartitionEnforcementCap = 0 }, "leaf1", "Cap 0", false},
		{"no inbound", func(s *site) { s.leaf[1].Switch.Info.InboundEnforcementCap = false }, "leaf1", "InboundEnforcementCap 0", false},
		{"no outbound", func(s *site) { s.leaf[1].Switch.Info.OutboundEnforcementCap = false }, "leaf1", "OutboundEnforcementCap 0", false},
	},
	"enforcement-overflow": {
		{"exact fit", func(s *site) { overflow(s, guardEntries) }, "leaf0:1", "33 keys", false},
		{"overflow", func(s *site) { overflow(s, guardEntries+1) }, "leaf0:1", "34 keys", false},
	},
	"keys-do-not-fit": {
		{"small table", func(s *site) {
			s.hosts[1].Node.Info.PartitionCap = 2
			subnettest.SetPKeys(s.hosts[1], 0x7FFF, red.Full())
		}, "h1", "PartitionCap 2", false},
	},
	"switch-wider-than-host": {
		{"another tenant's", func(s *site) { p := s.hosts[0].Peer; subnettest.SetPKeys(p, append(keysOf(p), blue.Limited())...) }, "leaf0:1", "0x0102", false},
		{"in the second block", func(s *site) { s.hosts[0].Peer.PKeys[32] = blue.Full() }, "leaf0:1", "P_KeyTable[32]", false},
	},
	"switch-narrower-than-host": {
		{"a key short", func(s *site) { p := s.hosts[0].Peer; subnettest.SetPKeys(p, keysOf(p)[1:]...) }, "leaf0:1", "0x7fff", false},
	},
	"both-memberships": {
		{"storage", func(s *site) { last(s.hosts[0], storage.Full()) }, "h0", "both memberships", false},
	},
	"policy-drift": {
		{"foreign", func(s *site) { last(s.hosts[0], 0x0333) }, "h0", "0x0333", false},
		{"missing", func(s *site) { subnettest.SetPKeysThrough(s.hosts[0], keysOf(s.hosts[0])[:2]...) }, "h0", "no 0x8101", false},
	},
	"stale-keys": {
		{"no link", func(s *site) { subnettest.SetPKeys(&s.leaf[0].Ports[idle], red.Full()) }, "leaf0:6", "Down", false},
		{"another host", func(s *site) {
			a, b := s.hosts[0].Peer, s.hosts[1].Peer
			x, y := s.hosts[0], s.hosts[1]
			observed.Connect(a, y)
			observed.Connect(b, x)
		}, "leaf0:1", "as before", false},
	},
	"idle-port-open": {
		{"default", func(s *site) { open0(s, 0xFFFF) }, "leaf0:6", "0xffff", false},
		{"tenant", func(s *site) { open0(s, red.Limited()) }, "leaf0:6", "0x0101", false},
	},
	"bridge-host": {
		{"full in two", func(s *site) { last(s.hosts[0], blue.Full()) }, "h0", "0x0102", false},
		{"over two ports, no policy", func(s *site) {
			s.intent.Partitions = nil
			n := s.hosts[0].Node
			n.Ports = append(n.Ports, observed.Port{Node: n, Num: 2, GUID: 0x77, Reached: true, InfoRead: true})
			s.hosts[0] = &n.Ports[1]
			observed.Connect(s.hosts[0], s.leaf[0].Port(1))
			subnettest.SetPKeys(&n.Ports[2], blue.Full())
		}, "h0", "0x0102", false},
	},
	"shared-full": {
		{"storage", func(s *site) {
			for _, i := range []int{0, 2} {
				subnettest.SetPKeysThrough(s.hosts[i], append([]ib.PKey{storage.Full()}, keysOf(s.hosts[i])[2:]...)...)
			}
		}, "0x0200", "h0", false},
	},
	"default-members": {
		{"port 0", func(s *site) { subnettest.SetPKeys(&s.spine.Ports[0], 0xFFFF) }, "spine:0", "0xffff", false},
		{"a manager that is limited", func(s *site) { subnettest.SetPKeysThrough(s.hosts[7], 0x7FFF) }, "h7", "does not hold", false},
		{"without a policy", func(s *site) { s.intent.Partitions = nil; subnettest.SetPKeysThrough(s.hosts[7], 0x7FFF) }, "h7", "does not hold", false},
	},
	"index-zero": {
		{"empty", func(s *site) { s.hosts[0].PKeys[0] = 0 }, "h0", "0x0000", false},
		{"no partition", func(s *site) { s.hosts[0].PKeys[0] = 0x8000 }, "h0", "0x8000", false},
	},
	"invalid-entries": {
		{"no partition", func(s *site) { s.hosts[0].PKeys[7] = 0x8000 }, "h0", "0x8000", false},
		{"twice", func(s *site) { s.hosts[0].PKeys[39] = red.Full() }, "h0", "both 0x8101", false},
	},
	"key-changed-hands": {
		{"red", func(s *site) {
			for i, p := range s.hosts[:6] {
				keys := []ib.PKey{0x7FFF, storage.Limited(), red.Full()}
				if i == 0 || i == 1 || i == 4 {
					keys[2] = 0x8444
				}
				subnettest.SetPKeysThrough(p, keys...)
			}
		}, "0x0101", "none of the 3", false},
	},
	"switch-link-foreign": {
		{"not listed", func(s *site) {
			s.cable(&s.leaf[0].Ports[idle], &s.leaf[1].Ports[idle])
		}, "leaf0:6", "leaf1:6", false},
		{"listed elsewhere", func(s *site) {
			a, b := &s.spine.Ports[1], &s.spine.Ports[2]
			observed.Connect(a, &s.leaf[1].Ports[uplink])
			observed.Connect(b, &s.leaf[0].Ports[uplink])
		}, "spine:1", "leaf1:5", false},
		{"against the earlier reading", func(s *site) {
			s.intent.Cables = nil
			s.cable(&s.leaf[0].Ports[idle], &s.leaf[1].Ports[idle])
		}, "leaf0:6", "leaf1:6", false},
	},
	"switch-in-tenant": {
		{"port 0", func(s *site) { subnettest.SetPKeys(&s.spine.Ports[0], 0x7FFF, red.Limited()) }, "spine:0", "0x0101", false},
	},
	"router-in-tenant": {
		{"a router", func(s *site) {
			p := s.addHost(ib.NodeRouter, "router")
			s.cable(&s.leaf[0].Ports[idle], p)
			subnettest.SetPKeysThrough(p, 0x7FFF, red.Limited())
		}, "router", "0x0101", false},
	},
	"virtual-ports": {
		{"claimed", func(s *site) {
			s.hosts[0].Info.CapabilityMask |= smp.CapHasCapabilityMask2
			s.hosts[0].Info.CapabilityMask2 = smp.Cap2Virtualization
		}, "h0", "virtual", true},
	},
	"mkey-zero": {
		{"a host", func(s *site) { s.hosts[0].Info.MKey, s.hosts[0].Info.MKeyProtectBits = 0, 0 }, "h0", "M_Key 0", false},
		{"a switch", func(s *site) { s.spine.Ports[0].Info.MKey, s.spine.Ports[0].Info.MKeyProtectBits = 0, 0 }, "spine:0", "M_Key 0", false},
		{"hidden", func(s *site) { s.hosts[0].Info.MKey = 0 }, "h0", "hidden", true},
	},
	"mkey-readable": {
		{"the key", func(s *site) { s.hosts[0].Info.MKeyProtectBits = 0 }, "h0", "M_KeyProtectBits 0", false},
		{"the rest", func(s *site) { s.hosts[0].Info.MKeyProtectBits = 1 }, "h0", "M_KeyProtectBits 1", false},
	},
	"mkey-lease": {
		{"a host", func(s *site) { s.hosts[0].Info.MKeyLeasePeriod = 60 }, "h0", "60 s", false},
		{"a switch", func(s *site) { s.spine.Ports[0].Info.MKeyLeasePeriod = 0xFFFF }, "spine:0", "65535 s", false},
	},
	"mkey-shared": {
		{"two hosts", func(s *site) { s.hosts[1].Info.MKey = s.hosts[0].Info.MKey }, "h1", "h0", false},
		{"hidden", func(s *site) { s.hosts[0].Info.MKey = 0 }, "h0", "hidden", true},
	},
	"mkey-weak": {
		{"small", func(s *site) { s.hosts[0].Info.MKey = 0xFACE }, "h0", "2^32", false},
		{"repeated", func(s *site) { s.hosts[0].Info.MKey = 0x0102_0301_0203_0102 }, "h0", "bytes", false},
		{"port GUID", func(s *site) { s.hosts[0].Info.MKey = ib.MKey(s.hosts[0].GUID) }, "h0", "GUID", false},
		{"SM_Key", func(s *site) { s.hosts[0].Info.MKey = ib.MKey(s.hosts[7].SMInfo.SMKey) }, "h0", "SM_Key", false},
	},
	"mkey-not-rotated": {
		{"moved", func(s *site) { subnettest.SetPKeysThrough(s.hosts[0], 0x7FFF, storage.Limited(), blue.Full()) }, "h0", "as it was", false},
	},
	"mkey-lost": {
		{"a host", func(s *site) { s.hosts[0].Info.MKey, s.hosts[0].Info.MKeyProtectBits = 0, 0 }, "h0", "had a key", false},
	},
	"mkey-violations": {
		{"some", func(s *site) { s.hosts[0].Info.MKeyViolations = 3 }, "h0", "M_KeyViolations 3", false},
		{"grown", func(s *site) {
			s.hosts[0].Info.MKeyViolations = 3
			s.options.Earlier.Node(s.hosts[0].Node.GUID()).Ports[1].Info.MKeyViolations = 2
		}, "h0", "2 in the earlier", false},
		{"at its maximum", func(s *site) {
			s.hosts[0].Info.MKeyViolations = 0xFFFF
			s.options.Earlier.Node(s.hosts[0].Node.GUID()).Ports[1].Info.MKeyViolations = 0xFFFF
		}, "h0", "at its maximum", true},
	},
	"sm-key-default": {
		{"OpenSM's", func(s *site) { s.hosts[7].SMInfo.SMKey = 1 }, "h7", "SM_Key 1", false},
		{"hidden", func(s *site) {
			s.hosts[7].SMInfo.SMKey, s.hosts[7].Info.MKey, s.hosts[7].Info.MKeyProtectBits = 0, 0, 0
		}, "h7", "hidden", true},
		{"nobody", func(s *site) { s.hosts[7].Info.CapabilityMask = 0; s.hosts[7].SMInfoRead = false }, "the fabric", "no port", true},
	},
	"rogue-manager": {
		{"a host", func(s *site) {
			s.hosts[1].Info.CapabilityMask |= smp.CapIsSM
			s.hosts[1].SMInfoRead, s.hosts[1].SMInfo.SMState = true, smp.SMStandby
		}, "h1", "standby", false},
		{"one that is silent, no list", func(s *site) { s.intent.Managers = nil; s.hosts[1].Info.CapabilityMask |= smp.CapIsSM }, "h1", "not answered", false},
	},
	"two-masters": {
		{"another LID", func(s *site) { s.hosts[1].Info.MasterSMLID = 2 }, "h1", "most ports", false},
		{"nobody's LID", func(s *site) {
			for _, p := range s.f.EndPorts() {
				p.Info.MasterSMLID = 99
			}
		}, "the fabric", "no port", false},
		{"two masters", func(s *site) {
			s.hosts[1].Info.CapabilityMask |= smp.CapIsSM
			s.hosts[1].SMInfoRead, s.hosts[1].SMInfo.SMState = true, smp.SMMaster
		}, "h7", "so is h1", false},
	},
	"duplicate-guid": {
		{"node", func(s *site) { s.hosts[1].Node.Contested = true }, "h1", "second device", false},
		{"port", func(s *site) { s.hosts[1].GUID = s.hosts[2].GUID }, "h", "same port GUID", false},
	},
	"guid-elsewhere": {
		{"swapped", func(s *site) {
			a, b := s.hosts[0].Peer, s.hosts[5].Peer
			x, y := s.hosts[0], s.hosts[5]
			observed.Connect(a, y)
			observed.Connect(b, x)
		}, "h0", "on the list", false},
		{"new", func(s *site) {
			p := s.addHost(ib.NodeCA, "new")
			s.cable(&s.leaf[0].Ports[idle], p)
			subnettest.SetPKeysThrough(p, 0x7FFF)
		}, "new", "no such port", false},
	},
	"alias-guid": {
		{"another's GUID", func(s *site) { s.hosts[0].GUIDInfo[0] = smp.GUIDInfo{GUIDs: [8]uint64{1: uint64(s.hosts[5].GUID)}} }, "h0", "h5", false},
		{"not the policy's", func(s *site) {
			s.intent.Aliases = map[ib.PortGUID][]ib.PortGUID{s.hosts[5].GUID: {1}}
		}, "h5", "does not give it", false},
		{"another's alias", func(s *site) { s.hosts[0].GUIDInfo[0] = s.hosts[5].GUIDInfo[0] }, "h5", "h0", false},
	},
	"device-changed": {
		{"new", func(s *site) { subnettest.SetPKeys(s.addHost(ib.NodeCA, "new"), 0x7FFF) }, "new", "not in the earlier", false},
		{"vendor", func(s *site) { s.hosts[0].Node.Info.VendorID = 7 }, "h0", "it was", false},
		{"revision", func(s *site) { s.hosts[0].Node.Info.Revision++ }, "h0", "it was", false},
	},
	"lid-overlap": {
		{"same", func(s *site) { s.hosts[1].Info.LID = s.hosts[0].Info.LID }, "h", "also one of", false},
		{"range", func(s *site) { s.spine.Ports[0].Info.LID = 16; s.hosts[0].Info.LID = 17; s.spine.Ports[0].Info.LMC = 1 }, "h0", "also one of", false},
		{"none", func(s *site) { s.hosts[1].Info.LID = 0 }, "h1", "LID", false},
		{"low bits", func(s *site) { s.hosts[0].Info.LID, s.hosts[0].Info.LMC = 21, 1 }, "h0", "LMC 1", false},
		{"moved", func(s *site) { s.hosts[0].Info.LID = 60 }, "h0", "earlier reading", false},
	},
	"multicast-leak": {
		{"a blue host", func(s *site) { send(s.hosts[3]) }, "0xc003", "4 hosts", false},
	},
	"qkey-violations": {
		{"some", func(s *site) { s.hosts[0].Info.QKeyViolations = 1 }, "h0", "Q_KeyViolations 1", false},
	},
	"failed-open": {
		{"all", func(s *site) {
			for _, p := range s.hosts {
				subnettest.SetPKeysThrough(p, 0xFFFF)
			}
		}, "the fabric", "all 8", false},
	},
	"takeover-changed": {
		{"keys", func(s *site) { takeover(s); last(s.hosts[0], 0x0333) }, "h0", "0x0333", false},
		{"enforcement", func(s *site) { takeover(s); s.hosts[0].Peer.Info.PartitionEnforcementInbound = false }, "leaf0:1", "Inbound 0", false},
		{"routes", func(s *site) { takeover(s); s.spine.Switch.LFT[s.hosts[0].Info.LID] = 2 }, "spine", "forwarding table", false},
	},
	"pkey-violations": {
		{"a host", func(s *site) { s.hosts[0].Info.PKeyViolations = 1 }, "h0", "P_KeyViolations 1", false},
		{"a switch port", func(s *site) { s.hosts[0].Peer.Info.PKeyViolations = 9 }, "leaf0:1", "P_KeyViolations 9", false},
	},
	"route-broken": {
		{"loop", func(s *site) { s.spine.Switch.LFT[s.hosts[0].Info.LID] = 2 }, "leaf1", "comes back", false},
		{"black hole", func(s *site) { s.spine.Switch.LFT[s.hosts[0].Info.LID] = ib.PortNone }, "spine", "no route", false},
		{"no device there", func(s *site) { s.leaf[1].Switch.LFT[s.hosts[0].Info.LID] = idle }, "leaf1", "no device", false},
		{"somebody else", func(s *site) { s.leaf[0].Switch.LFT[s.hosts[0].Info.LID] = 2 }, "leaf0", "h1", false},
		{"past the top", func(s *site) { s.leaf[0].Switch.Info.LinearFDBTop = 3 }, "leaf0", "no route", false},
		{"copies in a circle", func(s *site) {
			s.cable(&s.leaf[0].Ports[idle], &s.leaf[1].Ports[idle])
			for _, sw := range append(s.leaf[:2:2], s.spine) {
				t := sw.Switch.MFT[0]
				for i := 1; i < len(sw.Ports); i++ {
					if p := sw.Ports[i].Peer; p != nil && p.Node.Switch != nil {
						t.Masks[9] |= 1 << i
					}
				}
				sw.Switch.MFT[0] = t
			}
		}, "spine:", "copies of multicast packets go round: spine:", false},
	},
	"credit-loop": {
		{"a ring", func(s *site) { ring(s, 1) }, "spine:1", "wait for each other", false},
		{"a ring with VLs", func(s *site) { ring(s, 3) }, "spine:1", "service levels", true},
	},
	"vl-shared": {
		{"one VL", func(s *site) {
			s.spine.Ports[1].SLToVL[2] = smp.SLToVLMappingTable{}
		}, "spine:1", "both take VL 0", false},
		{"no tables", func(s *site) {
			p := &s.spine.Ports[1]
			p.SLToVL, p.Info.VLCap = nil, 1
		}, "spine:1", "both take VL 0", false},
	},
	"raw-packets": {
		{"inbound", func(s *site) { s.hosts[0].Peer.Info.FilterRawInbound = false }, "leaf0:1", "Inbound 0", false},
		{"outbound", func(s *site) { s.hosts[0].Peer.Info.FilterRawOutbound = false }, "leaf0:1", "Outbound 0", false},
	},
	"packets-short-lived": {
		{"as made", func(s *site) { s.leaf[0].Switch.Info.LifeTimeValue = 0 }, "leaf0", "LifeTimeValue 0", false},
		{"head of the queue", func(s *site) { s.hosts[0].Peer.Info.HOQLife = 9 }, "leaf0:1", "HOQLife 9", false},
		{"never reached", func(s *site) { s.hosts[0].Peer.Info.HOQLife = 19 }, "leaf0:1", "never reached", false},
	},
	"switch-link-narrower": {
		{"a tenant's key", func(s *site) {
			p := &s.spine.Ports[1]
			p.Info.PartitionEnforcementOutbound = true
			subnettest.SetPKeys(p, ib.PKeyBaseDefault.Full(), storage.Full(), red.Full())
		}, "spine:1", "no key of 0x0102", false},
	},
	"vl-starved": {
		{"no weight", func(s *site) {
			p := &s.spine.Ports[1]
			p.VLArbitration = make([]smp.VLArbitrationTable, 4)
			p.VLArbitration[0].Entries[0] = smp.VLArbitrationEntry{VL: 0, Weight: 64}
		}, "spine:1", "VL 1", false},
	},
	"port-not-well": {
		{"a host", func(s *site) { s.hosts[0].Info.DiagCode = 4 }, "h0", "DiagCode 0x0004: hard failure", false},
		{"port 0", func(s *site) { s.spine.Ports[0].Info.DiagCode = 1 }, "spine:0", "self-test", false},
		{"vendor code", func(s *site) { s.hosts[0].Info.DiagCode = 0x7FF3 }, "h0", "port works, vendor code 0x7ff", false},
		{"a chain", func(s *site) { sick(s, 0x8014, map[uint32]uint16{1: 5, 5: 0}) }, "h0", "VendorDiag[1] 01, VendorDiag[5] 05", false},
		{"a chain that breaks off", func(s *site) { sick(s, 0x8014, map[uint32]uint16{1: 5}) }, "h0", "VendorDiag block 5 was not read", true},
		{"a chain that comes back", func(s *site) { sick(s, 0x8014, map[uint32]uint16{1: 5, 5: 1}) }, "h0", "the chain comes back to block 1", false},
		{"not read", func(s *site) { s.hosts[0].InfoRead = false }, "h0", "PortInfo", true},
	},
	"not-read": {
		{"a fault", func(s *site) { s.options.Unread = []Unread{{"h0", "no answer"}} }, "h0", "no answer", true},
		{"one block", func(s *site) { s.hosts[0].PKeysRead[1] = false }, "h0", "P_KeyTable", true},
		{"a stranger", func(s *site) {
			p := &s.leaf[0].Ports[idle]
			p.Info.PortState, p.Info.PortPhysicalState = smp.PortInit, smp.PhysLinkUp
		}, "leaf0:6", "behind it", true},
		{"old", func(s *site) { s.options.MaxAge, s.options.Age = 60e9, 61e9 }, "the reading", "1m1s old", true},
	},
}

// sick gives h0 a DiagCode and blocks of VendorDiag, each with the index of the next.
func sick(s *site, code smp.DiagCode, next map[uint32]uint16) {
	p := s.hosts[0]
	p.Info.DiagCode, p.VendorDiag = code, map[uint32]smp.VendorDiag{}
	for index, n := range next {
		p.VendorDiag[index] = smp.VendorDiag{NextIndex: n, DiagData: [smp.VendorDiagDataSize]byte{byte(index)}}
	}
}

// overflow gives h0 n keys, and turns enforcement before it off.
func overflow(s *site, n int) {
	var keys []ib.PKey
	for i := range n {
		keys = append(keys, ib.PKey(0x8300+i))
	}
	subnettest.SetPKeysThrough(s.hosts[0], keys...)
	p := s.hosts[0].Peer
	p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound = false, false
}

// open0 leaves the idle port of the first leaf open, with a key.
func open0(s *site, k ib.PKey) {
	p := &s.leaf[0].Ports[idle]
	p.Info.PortPhysicalState = smp.PhysPolling
	subnettest.SetPKeys(p, k)
}

// takeover makes h5 the manager.
func takeover(s *site) {
	for _, p := range s.f.EndPorts() {
		p.Info.MasterSMLID = s.hosts[5].Info.LID
	}
}

// ring cables the leaves into a circle of three with the spine, which then has
// hosts' traffic go round one way only.
func ring(s *site, vls uint8) {
	s.cable(&s.leaf[0].Ports[idle], &s.leaf[1].Ports[idle])
	p := s.addHost(ib.NodeCA, "spinehost")
	n := s.spine
	n.Ports = append(n.Ports, observed.Port{Node: n, Num: 3, Reached: true, InfoRead: true})
	for i := range n.Ports { // the ports have moved
		if n.Ports[i].Peer != nil {
			observed.Connect(&n.Ports[i], n.Ports[i].Peer)
		}
	}
	subnettest.SetPKeys(&n.Ports[3])
	s.cable(&n.Ports[3], p)
	subnettest.SetPKeysThrough(p, 0x7FFF)
	next := map[*observed.Node]ib.PortNum{s.leaf[0]: idle, s.leaf[1]: uplink, s.spine: 1}
	for sw, out := range next {
		sw.Switch.Info.LinearFDBTop = ib.LID(len(s.f.EndPorts()))
		for _, to := range s.f.EndPorts() {
			switch {
			case to.Node == sw:
			case to.Peer != nil && to.Peer.Node == sw:
				sw.Switch.LFT[to.Info.LID] = to.Peer.Num
			default:
				sw.Switch.LFT[to.Info.LID] = out
			}
		}
		for i := range sw.Ports {
			sw.Ports[i].Info.OperationalVLs = vls
		}
	}
}

func of(r *Report, check string) []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Check != check })
}

// The good fabric has no finding, and every check that can be made is made.
func TestGoodFabric(t *testing.T) {
	for _, profile := range []Profile{Basic, Tenant, Strict} {
		s := newSite()
		s.options.Profile = profile
		r := Audit(s.f, s.intent, s.options)
		if len(r.Findings) != 0 || r.Counts != (Counts{}) || r.Fails(Low) {
			t.Fatalf("%s: %+v", profile, r.Findings)
		}
		for _, e := range Catalogue() {
			passed, skipped := slices.Contains(r.Passed, e.Check), slices.Contains(r.Skipped, e.Check)
			if want := e.Checkable && e.Profile <= profile; passed != want {
				t.Errorf("%s: %s passed: %v", profile, e.Check, passed)
			}
			if want := e.Checkable && e.Profile > profile; skipped != want {
				t.Errorf("%s: %s skipped: %v", profile, e.Check, skipped)
			}
		}
	}
}

// A manager behind a guarded port that shows its SM_Key to nobody is as it should
// be.
func TestSMKeyKept(t *testing.T) {
	s := newSite()
	s.hosts[7].SMInfo.SMKey = 0
	if r := Audit(s.f, s.intent, s.options); len(r.Findings) != 0 {
		t.Errorf("%+v", r.Findings)
	}
}

// Every check that can be made has a fixture that fails it; what the check says
// names the place and what was read.
func TestEveryCheckHasAFixture(t *testing.T) {
	for _, e := range Catalogue() {
		if e.Checkable != (len(fixtures[e.Check]) > 0) {
			t.Errorf("%s: checkable %v, %d fixtures", e.Check, e.Checkable, len(fixtures[e.Check]))
		}
		for _, x := range fixtures[e.Check] {
			t.Run(e.Check+"/"+x.name, func(t *testing.T) {
				s := newSite()
				x.mutate(s)
				r := Audit(s.f, s.intent, s.options)
				want := e.Severity
				if x.unknown {
					want = Unknown
				}
				if !slices.ContainsFunc(r.Findings, func(f Finding) bool {
					return f.Check == e.Check && f.Number == e.Number && f.Severity == want && f.Advice != "" &&
						strings.Contains(f.Where, x.where) && strings.Contains(f.Read, x.read)
				}) {
					t.Errorf("no %s finding at %q with %q:\n%+v", want, x.where, x.read, of(r, e.Check))
				}
				if !r.Fails(e.Severity) {
					t.Error("the report does not fail")
				}
			})
		}
	}
	for name := range fixtures {
		if !slices.ContainsFunc(Catalogue(), func(e Entry) bool { return e.Check == name }) {
			t.Errorf("fixtures of %s, which is no check", name)
		}
	}
}

// needNothing are the checks that rest on NodeInfo and the cables alone.
var needNothing = []string{"keys-do-not-fit", "duplicate-guid", "guid-elsewhere", "switch-link-foreign"}

// No check passes on a fabric of which nothing but NodeInfo was read, nor do
// those that compare with an earlier reading when that was not read.
func TestUnreadIsNeverAPass(t *testing.T) {
	s := newSite()
	s.addHost(ib.NodeRouter, "router")
	s.blind()
	r := Audit(s.f, s.intent, s.options)
	for _, e := range Catalogue() {
		if passed := slices.Contains(r.Passed, e.Check); e.Checkable && passed != slices.Contains(needNothing, e.Check) {
			t.Errorf("%s passed: %v", e.Check, passed)
		}
	}
	for _, f := range r.Findings {
		if f.Severity != Unknown && f.Check != "device-changed" { // the router is new
			t.Errorf("%s, of nothing that was read: %+v", f.Severity, f)
		}
	}
	s, old := newSite(), newSite()
	old.blind()
	s.options.Earlier = old.f
	takeover(s)
	last(s.hosts[0], 0x0333)
	r = Audit(s.f, s.intent, s.options)
	for _, check := range []string{"key-changed-hands", "mkey-not-rotated", "mkey-lost", "takeover-changed", "lid-overlap", "stale-keys"} {
		if !slices.ContainsFunc(of(r, check), func(f Finding) bool { return f.Severity == Unknown }) {
			t.Errorf("%s: an earlier reading of nothing is taken for one: %+v", check, of(r, check))
		}
	}
}

// TestNotCheckable wants a reason for each check that is not made, and the
// input named that would let it be.
func TestNotCheckable(t *testing.T) {
	s := bare()
	r := Audit(s.f, Intent{}, Options{Profile: Strict})
	for _, e := range Catalogue() {
		i := slices.IndexFunc(r.NotCheckable, func(n NotCheckable) bool { return n.Check == e.Check })
		switch {
		case i < 0:
			if !e.Checkable {
				t.Errorf("%s cannot be made, and is not listed", e.Check)
			}
		case r.NotCheckable[i].Reason == "" || !e.Checkable && r.NotCheckable[i].Reason != e.Why:
			t.Errorf("%s: reason %q", e.Check, r.NotCheckable[i].Reason)
		}
	}
	if len(r.Findings) != 0 {
		t.Errorf("without a policy the good fabric has %+v", r.Findings)
	}
}

func TestCatalogueIsWhole(t *testing.T) {
	names := map[string]bool{}
	for i, e := range Catalogue() {
		if e.Number != i+1 || names[e.Check] || e.Check == "" || e.Title == "" || e.Severity == Unknown {
			t.Errorf("row %d: %+v", i+1, e)
		}
		names[e.Check] = true
		if e.Checkable != (e.How != "" && e.Advice != "") || e.Checkable == (e.Why != "") {
			t.Errorf("%s: how %q, advice %q, why %q", e.Check, e.How, e.Advice, e.Why)
		}
	}
}
