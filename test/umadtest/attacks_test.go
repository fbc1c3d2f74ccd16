package umadtest

import (
	enc "encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
)

// anAttack is a program of the catalogue.
type anAttack struct {
	number      int // in the catalogue
	name, title string
	// run is the attack, inside: how many of its goals it reached. args are port
	// GUIDs: of a host of the other tenant, and of another one of his.
	run func(args []string) (reached int, err error)
	// because says why it succeeds; empty for an attack that has to be stopped.
	because string
}

// Places of the demonstration fabric as red-1 sees it: its leaf, a host of the
// other tenant there, and a spine.
var (
	ownPort  = mad.Path{}
	ownLeaf  = mad.Path{1}
	aBlue    = mad.Path{1, 4}
	aSpine   = mad.Path{1, 5}
	farLeaf  = mad.Path{1, 5, 3}
	bluePort = ib.PortNum(4) // of the leaf
	redPort  = ib.PortNum(2)
)

// foreign is a P_Key that red does not hold.
const foreign ib.PKey = 0x8020

// attacks are the programs, the most destructive last.
var attacks = []anAttack{
	{19, "read-tables", "reads every P_Key table by directed routes", readTables, ""},
	{52, "read-fabric", "discovers the fabric, as ibnetdiscover does", walk, ""},
	{77, "read-by-lid", "reads devices by their LIDs", readByLID, ""},
	{78, "read-manager", "reads SMInfo of the manager", readManager, ""},
	{53, "sa-nodes", "queries subnet administration for all nodes", saNodes, ""},
	{79, "sa-links", "queries subnet administration for all links", saLinks, ""},
	{55, "sa-ports", "queries subnet administration for all ports", saPorts, ""},
	{30, "sa-paths", "queries paths between two hosts of another tenant", saPaths, ""},
	{37, "sa-service", "registers a service in another's name", saService, ""},
	{33, "sa-join", "joins another host to a group", saJoin, ""},
	{23, "counters", "clears the counters of the manager's port", clearCounters,
		"performance management has no key in InfiniBand; no verdict rests on counters"},
	{5, "own-table", "rewrites the P_Key table of its own port", ownTable, ""},
	{82, "leaf-table", "rewrites the P_Key table of its leaf port", leafTable, ""},
	{60, "guard-off", "turns off enforcement at its leaf port", guardOff, ""},
	{41, "far-table", "rewrites the P_Key table of a port on another leaf", farTable, ""},
	{83, "blue-table", "rewrites the P_Key table of a host of the other tenant", blueTable, ""},
	{44, "by-lid", "writes to a leaf by LID", writeByLID, ""},
	{27, "guess", "guesses an M_Key, 50 times", guess, ""},
	{63, "switch-info", "clears LinearFDBTop of a spine", switchInfo, ""},
	{62, "forwarding", "rewrites a forwarding table", forwarding, ""},
	{24, "link-down", "takes down the link of a host of the other tenant", linkDown, ""},
	{6, "own-key", "writes its own M_Key to a switch", ownKey, ""},
	{7, "is-sm", "sets IsSM with priority 15, to be shown an M_Key or handed the subnet", sayIsSM, ""},
	{81, "another-lid", "gives its own port another LID", anotherLID, ""},
}

// try counts a request that was obeyed.
func (f *attackFile) try(path mad.Path, method mad.Method, modifier uint32, attr smp.Attribute) (int, error) {
	_, obeyed, err := f.smp(path, 0, method, modifier, attr, 0)
	if err != nil || !obeyed {
		return 0, err
	}
	return 1, nil
}

// one does one thing by a directed route.
func one(path mad.Path, method mad.Method, modifier uint32, attr smp.Attribute) (int, error) {
	f, err := smpFile(mad.ClassSubnDirected)
	if err != nil {
		return 0, err
	}
	return f.try(path, method, modifier, attr)
}

// written reads an attribute, changes it and writes it.
func written(path mad.Path, modifier uint32, attr smp.Attribute, change func()) (int, error) {
	f, err := smpFile(mad.ClassSubnDirected)
	if err != nil {
		return 0, err
	}
	if _, err := f.try(path, mad.MethodGet, modifier, attr); err != nil {
		return 0, err
	}
	change()
	return f.try(path, mad.MethodSet, modifier, attr)
}

func readTables([]string) (n int, err error) {
	f, err := smpFile(mad.ClassSubnDirected)
	if err != nil {
		return 0, err
	}
	for port := ib.PortNum(1); port <= 8; port++ {
		got, err := f.try(ownLeaf, mad.MethodGet, smp.PKeyModifier(port, 0), &smp.PKeyTable{})
		if err != nil {
			return n, err
		}
		n += got
	}
	for _, path := range []mad.Path{{1, 1}, {1, 3}, aBlue, {1, 5, 3, 1}, {1, 5, 3, 2}} {
		got, err := f.try(path, mad.MethodGet, 0, &smp.PKeyTable{})
		if err != nil {
			return n, err
		}
		n += got
	}
	return n, nil
}

func walk([]string) (n int, err error) {
	f, err := smpFile(mad.ClassSubnDirected)
	if err != nil {
		return 0, err
	}
	for _, path := range []mad.Path{ownLeaf, {1, 1}, {1, 3}, aBlue, aSpine, {1, 5, 3}, {1, 5, 5}, {1, 5, 3, 1}, {1, 5, 3, 2}, {1, 5, 3, 3}} {
		got, err := f.try(path, mad.MethodGet, 0, &smp.NodeInfo{})
		if err != nil {
			return n, err
		}
		n += got
	}
	return n, nil
}

// lids are those that an attacker tries.
const lids = 24

func readByLID([]string) (n int, err error) {
	f, err := smpFile(mad.ClassSubnLID)
	if err != nil {
		return 0, err
	}
	own := ib.LID(ownNumber("lid"))
	for lid := ib.LID(1); lid <= lids; lid++ {
		if lid == own {
			continue
		}
		_, ok, err := f.smp(nil, lid, mad.MethodGet, 0, &smp.NodeInfo{}, 0)
		if err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

// readManager counts what SMInfo says of the key that managers show each other;
// that there is a manager is no secret.
func readManager([]string) (int, error) {
	f, err := smpFile(mad.ClassSubnLID)
	if err != nil {
		return 0, err
	}
	info := &smp.SMInfo{}
	if _, ok, err := f.smp(nil, ib.LID(ownNumber("sm_lid")), mad.MethodGet, 0, info, 0); err != nil || !ok {
		return 0, err
	}
	if info.SMKey != 0 {
		return 1, nil
	}
	return 0, nil
}

// sayIsSM says for sayTime that a manager of rank 15 waits here, and counts what
// managers tell it that they should tell nobody: M_Keys, and control packets. The
// SM_Key by which one of ours shows itself is another for each that it is shown to.
func sayIsSM([]string) (n int, err error) {
	const sayTime = 6 * time.Second
	f, err := openAttack(umad.Registration{
		Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion,
		Methods: umad.MethodSet(mad.MethodGet, mad.MethodSet, mad.MethodTrap),
	})
	if err != nil {
		return 0, err
	}
	fd, err := unix.Open("/dev/infiniband/issm0", unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	own := ownGID()
	for end := time.Now().Add(sayTime); time.Now().Before(end); {
		h, m, some := f.read(time.Until(end))
		var p mad.SMP
		if !some || p.UnmarshalBinary(m) != nil || p.Method.IsResponse() {
			continue
		}
		var info smp.SMInfo
		told := p.AttributeID == smp.AttrSMInfo && info.UnmarshalBinary(p.Data[:]) == nil && p.Method == mad.MethodSet
		if p.MKey != 0 || told {
			n++
			fmt.Fprintf(os.Stderr, "%v of %v, M_Key %v, SM_Key %v\n", p.Method, smp.AttributeName(p.AttributeID), p.MKey, info.SMKey)
		}
		if p.AttributeID != smp.AttrSMInfo {
			continue
		}
		info = smp.SMInfo{GUID: ib.PortGUID(enc.BigEndian.Uint64(own[8:])), SMKey: 1, Priority: 15, SMState: smp.SMStandby, ActCount: uint32(n) + 1}
		if err := info.Encode(&p.Data); err != nil {
			return n, err
		}
		p.MakeResponse(mad.StatusOK)
		var bytes [mad.Size]byte
		if err := p.Encode(&bytes); err != nil {
			return n, err
		}
		if err := f.post(umad.Header{LID: h.LID}, bytes[:]); err != nil {
			return n, err
		}
	}
	return n, nil
}

// fuzz sends nonsense to queue pairs 0 and 1 of everybody, fuzzMADs of each, from
// a seed.
func fuzz(args []string) (int, error) {
	const fuzzMADs = 1500
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return 0, err
	}
	random := rand.New(rand.NewPCG(seed, 16))
	smps, err := smpFile(mad.ClassSubnDirected)
	if err != nil {
		return 0, err
	}
	general, err := openAttack(umad.Registration{QPN: 1, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion})
	if err != nil {
		return 0, err
	}
	refused := 0
	for i := range fuzzMADs {
		var m [mad.Size]byte
		for at := range m {
			m[at] = byte(random.Uint32())
		}
		// Mostly well-formed, so that it gets further than the first check.
		method := []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodTrap, mad.MethodGetTable, mad.MethodGetMulti, mad.MethodDelete, mad.MethodReport}[random.IntN(7)]
		m[0], m[3] = mad.BaseVersion, byte(method)
		enc.BigEndian.PutUint16(m[4:], 0)
		f, h := smps, umad.Header{LID: ib.LIDPermissive}
		if i%2 == 0 {
			m[1], m[2], m[6], m[7] = byte(mad.ClassSubnDirected), 1, 0, byte(random.IntN(5))
			enc.BigEndian.PutUint16(m[16:], uint16(random.IntN(0x20)+0x10))
			enc.BigEndian.PutUint32(m[32:], 0xFFFFFFFF)
			for hop := range 8 {
				m[128+hop] = byte(random.IntN(9))
			}
		} else {
			f, h = general, generalTo(ib.LID(ownNumber("sm_lid")))
			m[1], m[2] = byte(mad.ClassSubnAdm), sa.ClassVersion
			enc.BigEndian.PutUint16(m[16:], uint16(random.IntN(0x40)))
			if random.IntN(4) > 0 {
				clear(m[24:36]) // no segment of a longer message
			}
		}
		if f.post(h, m[:]) != nil {
			refused++ // by the kernel
		}
	}
	if refused == 2*fuzzMADs {
		return 0, fmt.Errorf("the kernel accepted nothing")
	}
	return fuzzMADs - refused, nil
}

// seen counts the records of a table that are not about the attacker's tenant.
func seen(record sa.Record, mask sa.ComponentMask, foreign func([]byte) bool) (n int, err error) {
	f, err := adminFile()
	if err != nil {
		return 0, err
	}
	_, records, answered, err := f.administration(mad.MethodGetTable, mask, record, adminTries)
	if err != nil {
		return 0, err
	}
	if !answered {
		return 0, fmt.Errorf("subnet administration does not answer")
	}
	for _, r := range records {
		if foreign(r) {
			n++
		}
	}
	return n, nil
}

// adminTries is how often the kernel sends a request that gets no answer.
const adminTries = 50

func saNodes(args []string) (int, error) {
	blue, err := ib.ParsePortGUID(args[0])
	if err != nil {
		return 0, err
	}
	return seen(&sa.NodeRecord{}, 0, func(b []byte) bool {
		var r sa.NodeRecord
		return r.UnmarshalBinary(b) == nil && r.NodeInfo.PortGUID == blue
	})
}

func saLinks([]string) (int, error) {
	own := ib.LID(ownNumber("lid"))
	return seen(&sa.LinkRecord{}, 0, func(b []byte) bool {
		var r sa.LinkRecord
		return r.UnmarshalBinary(b) == nil && r.FromLID != own && r.ToLID != own
	})
}

func saPorts([]string) (int, error) {
	return seen(&sa.PortInfoRecord{}, 0, func(b []byte) bool {
		var r sa.PortInfoRecord
		return r.UnmarshalBinary(b) == nil && r.PortNum != 1 // of a switch: hosts have one port
	})
}

// accepted is 1 when a request of subnet administration succeeds.
func accepted(method mad.Method, mask sa.ComponentMask, record sa.Record) (int, error) {
	f, err := adminFile()
	if err != nil {
		return 0, err
	}
	status, _, answered, err := f.administration(method, mask, record, adminTries)
	if err != nil || !answered || status != mad.StatusOK {
		return 0, err
	}
	return 1, nil
}

func saPaths(args []string) (int, error) {
	from, err := gidOf(args[0])
	if err != nil {
		return 0, err
	}
	to, err := gidOf(args[1])
	if err != nil {
		return 0, err
	}
	r := &sa.PathRecord{SGID: from, DGID: to}
	r.NumbPath = 1
	return accepted(mad.MethodGet, sa.PathRecordSGID|sa.PathRecordDGID|sa.PathRecordNumbPath, r)
}

func saService(args []string) (int, error) {
	gid, err := gidOf(args[0])
	if err != nil {
		return 0, err
	}
	r := &sa.ServiceRecord{ServiceID: 0x77, ServiceGID: gid, ServicePKey: 0xFFFF, ServiceLease: sa.ServiceLeaseForever}
	copy(r.ServiceName[:], "disk")
	return accepted(mad.MethodSet, sa.ServiceRecordServiceID|sa.ServiceRecordServiceGID|sa.ServiceRecordServicePKey|
		sa.ServiceRecordServiceLease|sa.ServiceRecordServiceName, r)
}

func saJoin(args []string) (int, error) {
	gid, err := gidOf(args[0])
	if err != nil {
		return 0, err
	}
	r := &sa.MCMemberRecord{
		MGID: ib.GID{0xFF, 0x12, 0xA0, 0x1C, 15: 0x77}, PortGID: gid, JoinState: sa.JoinFull, PKey: 0xFFFF, QKey: 5,
	}
	return accepted(mad.MethodSet, sa.MCMemberRecordMGID|sa.MCMemberRecordPortGID|sa.MCMemberRecordJoinState|sa.MCMemberRecordPKey|
		sa.MCMemberRecordQKey|sa.MCMemberRecordSL|sa.MCMemberRecordTClass|sa.MCMemberRecordFlowLabel, r)
}

func clearCounters([]string) (int, error) {
	f, err := openAttack(umad.Registration{QPN: 1, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion})
	if err != nil {
		return 0, err
	}
	return f.counters(generalTo(ib.LID(ownNumber("sm_lid"))), mad.MethodSet, adminTries)
}

// counters reads or clears the counters of a port.
func (f *attackFile) counters(of umad.Header, method mad.Method, tries int) (int, error) {
	f.next++
	m := pm.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion, Method: method,
		TransactionID: f.next, AttributeID: pm.AttrPortCounters,
	}}
	body, err := (&pm.PortCounters{PortSelect: 1, CounterSelect: 0xFFFF}).AppendBinary(nil)
	if err != nil {
		return 0, err
	}
	copy(m.Data[:], body)
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		return 0, err
	}
	_, answered, err := f.ask(of, bytes, tries)
	if err != nil || !answered {
		return 0, err
	}
	return 1, nil
}

// idle are the fields of PortInfo in which a Set means "do this", as they are when
// nothing is to be done.
func idle(i *smp.PortInfo) {
	i.PortState, i.PortPhysicalState, i.LinkDownDefaultState, i.ClientReregister = 0, 0, 0, false
	i.LinkWidthEnabled, i.LinkSpeedEnabled, i.LinkSpeedExtEnabled = 0, 0, 0
}

func anotherLID([]string) (int, error) {
	i := &smp.PortInfo{}
	return written(ownPort, 0, i, func() { idle(i); i.LID++ })
}

func ownTable([]string) (int, error) {
	return one(ownPort, mad.MethodSet, 0, &smp.PKeyTable{Keys: keysWith()})
}

// keysWith is a block with the default key and the foreign one.
func keysWith() (keys [smp.PKeysPerBlock]ib.PKey) {
	keys[0], keys[1] = 0xFFFF, foreign
	return keys
}

func leafTable([]string) (int, error) {
	return one(ownLeaf, mad.MethodSet, smp.PKeyModifier(redPort, 0), &smp.PKeyTable{Keys: keysWith()})
}

func guardOff([]string) (int, error) {
	i := &smp.PortInfo{}
	return written(ownLeaf, uint32(redPort), i, func() {
		idle(i)
		i.PartitionEnforcementInbound, i.PartitionEnforcementOutbound = false, false
	})
}

func farTable([]string) (int, error) {
	return one(farLeaf, mad.MethodSet, smp.PKeyModifier(1, 0), &smp.PKeyTable{Keys: keysWith()})
}

func blueTable([]string) (int, error) {
	return one(aBlue, mad.MethodSet, 0, &smp.PKeyTable{Keys: keysWith()})
}

func writeByLID([]string) (n int, err error) {
	f, err := smpFile(mad.ClassSubnLID)
	if err != nil {
		return 0, err
	}
	for lid := ib.LID(1); lid <= lids; lid++ {
		if lid == ib.LID(ownNumber("lid")) {
			continue
		}
		_, ok, err := f.smp(nil, lid, mad.MethodSet, smp.PKeyModifier(0, 0), &smp.PKeyTable{Keys: keysWith()}, 0)
		if err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

func guess([]string) (n int, err error) {
	f, err := smpFile(mad.ClassSubnDirected)
	if err != nil {
		return 0, err
	}
	for i := range 50 {
		key := ib.MKey(uint64(os.Getpid()) * 0x9E3779B97F4A7C15 * uint64(i+1))
		_, ok, err := f.smp(ownLeaf, 0, mad.MethodSet, smp.PKeyModifier(redPort, 0), &smp.PKeyTable{Keys: keysWith()}, key)
		if err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

func switchInfo([]string) (int, error) {
	i := &smp.SwitchInfo{}
	return written(aSpine, 0, i, func() { i.LinearFDBTop = 0; i.PortStateChange = false })
}

func forwarding([]string) (int, error) {
	return one(farLeaf, mad.MethodSet, 0, &smp.LinearForwardingTable{})
}

func linkDown([]string) (int, error) {
	i := &smp.PortInfo{}
	return written(ownLeaf, uint32(bluePort), i, func() { idle(i); i.PortPhysicalState = smp.PhysDisabled })
}

func ownKey([]string) (int, error) {
	i := &smp.PortInfo{}
	return written(aSpine, 0, i, func() { idle(i); i.MKey, i.MKeyProtectBits = 0xE0E, 1 })
}
