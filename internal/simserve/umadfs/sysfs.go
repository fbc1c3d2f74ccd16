package umadfs

import (
	"fmt"
	"strconv"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/simserve/fuse"
)

// Folder is a directory whose entries are there for good.
type Folder struct{ entries []fuse.Entry }

// Entries implements fuse.Directory.
func (f *Folder) Entries() []fuse.Entry { return f.entries }

// Add adds an entry of a name that is not there yet.
func (f *Folder) Add(name string, n fuse.Node) {
	f.entries = append(f.entries, fuse.Entry{Name: name, Node: n})
}

// text is a file, made again for everyone who opens it.
type text struct{ content func() string }

func (t *text) Text() string { return t.content() }

// Text adds a file that has what content returns when it is opened.
func (f *Folder) Text(name string, content func() string) { f.Add(name, &text{content}) }

func (f *Folder) line(name string, line func() string) {
	f.Text(name, func() string { return line() + "\n" })
}

// Constant adds a file of one line.
func (f *Folder) Constant(name, value string) { f.line(name, func() string { return value }) }

// sysDevice is /sys/class/infiniband/DEVICE: what the agent of a node says, in
// the words of the kernel.
func sysDevice(agent func() *sma.Agent) *Folder {
	info := agent().NodeInfo(0)
	first, last := endPorts(agent())
	f := &Folder{}
	f.Constant("node_type", fmt.Sprintf("%d: %s", info.NodeType, info.NodeType))
	f.Constant("node_guid", groups(uint64(info.NodeGUID)))
	f.Constant("sys_image_guid", groups(info.SystemImageGUID))
	f.line("node_desc", func() string { return agent().Description() })
	f.Constant("fw_ver", "1.0.0")
	f.Constant("hw_rev", fmt.Sprintf("%x", info.Revision))
	f.Constant("hca_type", fmt.Sprintf("SIM%d", info.DeviceID))
	f.Constant("board_id", "ibwarden")
	ports := &Folder{}
	for num := first; num <= last; num++ {
		ports.Add(strconv.Itoa(int(num)), sysPort(agent, num, int(info.PartitionCap)))
	}
	f.Add("ports", ports)
	return f
}

func sysPort(agent func() *sma.Agent, num ib.PortNum, pkeys int) *Folder {
	port := func() *smp.PortInfo { return agent().Port(num) }
	f := &Folder{}
	f.line("lid", func() string { return fmt.Sprintf("0x%x", uint16(port().LID)) })
	f.line("lid_mask_count", func() string { return strconv.Itoa(int(port().LMC)) })
	f.line("sm_lid", func() string { return fmt.Sprintf("0x%x", uint16(port().MasterSMLID)) })
	f.line("sm_sl", func() string { return strconv.Itoa(int(port().MasterSMSL)) })
	f.line("cap_mask", func() string { return fmt.Sprintf("0x%08x", uint32(port().CapabilityMask)) })
	f.line("state", func() string { return stateLine(port().PortState) })
	f.line("phys_state", func() string { return physLine(port().PortPhysicalState) })
	f.line("rate", func() string { return rateLine(port()) })
	f.Constant("link_layer", "InfiniBand")
	gids := &Folder{}
	for i := range max(1, int(port().GUIDCap)) {
		gids.line(strconv.Itoa(i), func() string {
			guid, _ := agent().GUID(num, i)
			return groups(port().GIDPrefix) + ":" + groups(guid)
		})
	}
	f.Add("gids", gids)
	keys := &Folder{}
	for i := range pkeys {
		keys.line(strconv.Itoa(i), func() string {
			if table := agent().PKeys(num); i < len(table) {
				return table[i].String()
			}
			return ib.PKey(0).String()
		})
	}
	f.Add("pkeys", keys)
	return f
}

// groups writes 64 bits as the kernel writes GUIDs.
func groups(v uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", v>>48, v>>32&0xFFFF, v>>16&0xFFFF, v&0xFFFF)
}

var (
	stateNames = map[smp.PortState]string{
		smp.PortDown: "DOWN", smp.PortInit: "INIT", smp.PortArmed: "ARMED", smp.PortActive: "ACTIVE",
	}
	physNames = map[smp.PhysState]string{
		smp.PhysSleep: "Sleep", smp.PhysPolling: "Polling", smp.PhysDisabled: "Disabled",
		smp.PhysTraining: "PortConfigurationTraining", smp.PhysLinkUp: "LinkUp",
		smp.PhysErrorRecovery: "LinkErrorRecovery", smp.PhysTest: "Phy Test",
	}
)

func stateLine(s smp.PortState) string { return fmt.Sprintf("%d: %s", s, stateNames[s]) }

func physLine(s smp.PhysState) string { return fmt.Sprintf("%d: %s", s, physNames[s]) }

// rateLine is the rate of a link in the kernel's words, as "100 Gb/sec (4X EDR)".
// A link that is down has that of the slowest.
func rateLine(p *smp.PortInfo) string {
	speed, width := max(p.Speed(), smp.SpeedSDR), max(p.LinkWidthActive.Lanes(), 1)
	rate := speed.Tenths() * width
	fraction := ""
	if rate%10 != 0 {
		fraction = fmt.Sprintf(".%d", rate%10)
	}
	return fmt.Sprintf("%d%s Gb/sec (%dX %s)", rate/10, fraction, width, speed)
}
