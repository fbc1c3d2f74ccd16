package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/token"
	"go/types"
	"math/bits"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// decision says what ibwarden makes of a capability bit, and why.
type decision struct {
	what string // acts, shown or ignored, as docs/dev/capabilities.md explains them
	why  string // what is done, or why nothing is; with a full stop
	at   string // "package Function": what acts on the bit
}

const (
	acts    = "acts"
	shown   = "shown"
	ignored = "ignored"
)

// decisions has every capability bit that the codec knows, by package and constant, or by package,
// structure and field.
var decisions = map[string]decision{
	"smp.CapIsSM":                         {acts, "Who has it takes part in the election; where managers are named, who is not named is fenced off.", "internal/manager/mastership IsRival"},
	"smp.CapNoticeSupported":              {acts, "A port that keeps notices and sends no traps is asked for its notices.", "internal/manager/engine keepsNotices"},
	"smp.CapTrapSupported":                {acts, "A port that sends traps is not asked for notices.", "internal/manager/engine keepsNotices"},
	"smp.CapOptionalIPD":                  {ignored, "It is about how a sender spaces its packets: the manager only says how fast the path is (PathRecord.Rate).", ""},
	"smp.CapAutomaticMigration":           {shown, "The two ends of a connection agree on their second path by themselves.", ""},
	"smp.CapSLMapping":                    {ignored, "Every port with two data VLs or more has SLToVLMappingTable (SV-03), and VLCap says how many it has; a device that refuses the table is reported.", ""},
	"smp.CapMKeyNVRAM":                    {ignored, "What a device holds after a restart is read from it, not concluded.", ""},
	"smp.CapPKeyNVRAM":                    {ignored, "What a device holds after a restart is read from it, not concluded.", ""},
	"smp.CapLEDInfo":                      {acts, "`ibwarden device led` switches a light only where there is one.", "internal/app/daemon Light"},
	"smp.CapSMDisabled":                   {acts, "`ibwarden doctor` says that no manager can run on such a port.", "internal/app/cli/look disabled"},
	"smp.CapSystemImageGUID":              {ignored, "Without it NodeInfo.SystemImageGUID is 0, and 0 is taken for none.", ""},
	"smp.CapPKeySwitchExternalPortTrap":   {ignored, "Trap 259 is taken from every switch that sends it, and none is waited for.", ""},
	"smp.CapCableInfo":                    {ignored, "The codec does not know the attribute, and no setting depends on what a cable says of itself.", ""},
	"smp.CapExtendedSpeeds":               {acts, "PortInfo is asked for and set with the modifier's bit 31, without which a device may hide its speeds.", "internal/observed Modifier"},
	"smp.CapHasCapabilityMask2":           {acts, "Without it CapabilityMask2 means nothing.", "internal/judge/audit virtualPorts"},
	"smp.CapCommunicationManagement":      {shown, "It announces an agent for other hosts, which a manager never asks.", ""},
	"smp.CapSNMPTunnelling":               {shown, "It announces an agent for other programs, which a manager never asks.", ""},
	"smp.CapReinit":                       {ignored, "The manager grants no port what it asks for in InitType, and leaves InitTypeReply as it is.", ""},
	"smp.CapDeviceManagement":             {shown, "It announces an agent for other hosts, which a manager never asks.", ""},
	"smp.CapVendorClass":                  {shown, "It announces an agent of the vendor's own, which a manager never asks.", ""},
	"smp.CapDRNotice":                     {ignored, "Every port is given a LID and the manager's own as MasterSMLID, so that its traps come by LID.", ""},
	"smp.CapCapabilityMaskNotice":         {ignored, "Trap 144 is followed whoever sends it; a port that sends none is read again in the rounds of monitoring.", ""},
	"smp.CapBootManagement":               {shown, "It announces an agent for other programs, which a manager never asks.", ""},
	"smp.CapLinkRoundTripLatency":         {shown, "PortInfo.LinkRoundTripLatency is printed; routes do not depend on it.", ""},
	"smp.CapClientReregistration":         {acts, "Only a port that has it is asked to register its groups and services again.", "internal/manager/plan hasReregistration"},
	"smp.CapOtherLocalChangesNotice":      {ignored, "Trap 144 is followed whoever sends it; a port that sends none is read again in the rounds of monitoring.", ""},
	"smp.CapLinkSpeedWidthPairsTable":     {ignored, "The codec does not know the attribute: settings limit width and speed one by one.", ""},
	"smp.CapVendorMADs":                   {ignored, "The codec does not know the attribute: the texts that it is made from do not have its layout.", ""},
	"smp.CapMulticastPKeyTrapSuppression": {ignored, "The manager has no trap suppressed: each names a sender with a wrong P_Key.", ""},
	"smp.CapMulticastFDBTop":              {acts, "Of MulticastForwardingTable only what MulticastFDBTop leaves in force is read, and written in an order that suits it.", "internal/manager/plan hasTop"},
	"smp.CapHierarchyInfo":                {ignored, "The codec does not know the attribute: the texts that it is made from do not have its layout.", ""},

	"smp.Cap2SetNodeDescription":   {ignored, "The name of a device is its owner's: nothing of ibwarden sets it.", ""},
	"smp.Cap2PortInfoExtended":     {ignored, "Only `ibwarden device get` asks for the attribute, and a device without it says so.", ""},
	"smp.Cap2Virtualization":       {acts, "`ibwarden audit` says that the P_Keys of virtual ports are unknown.", "internal/judge/audit virtualPorts"},
	"smp.Cap2SwitchPortStateTable": {ignored, "The codec does not know the attribute: PortInfo of each port says the same.", ""},
	"smp.Cap2LinkWidth2X":          {ignored, "LinkWidthSupported has 2X where it is there.", ""},
	"smp.Cap2LinkSpeedHDR":         {ignored, "LinkSpeedExtSupported has HDR where it is there.", ""},
	"smp.Cap2MKeyProtectBitsExt":   {ignored, "The codec knows two M_KeyProtectBits: the texts that it is made from do not say where there are more.", ""},
	"smp.Cap2EnhancedTrap128":      {ignored, "Trap 128 has the whole switch looked at, whatever else it says.", ""},
	"smp.Cap2PartitionTop":         {ignored, "The codec does not know what it announces: P_KeyTables are read to the end of their capacity.", ""},
	"smp.Cap2EnhancedQoSArbiter":   {ignored, "The codec does not know what it announces: the manager shares links by VLArbitrationTable.", ""},
	"smp.Cap2LinkSpeedNDR":         {ignored, "LinkSpeedExtSupported has NDR where it is there.", ""},
	"smp.Cap2ExtendedSpeeds2":      {ignored, "LinkSpeedExtSupported2 is 0 where it is not there.", ""},
	"smp.Cap2LinkSpeedXDR":         {ignored, "LinkSpeedExtSupported2 has XDR where it is there.", ""},

	"smp.SwitchInfo.InboundEnforcementCap":             {acts, "P_Keys of packets that come in are checked where the switch can; where it cannot, the proof and the audit say so.", "internal/manager/facts OfGuard"},
	"smp.SwitchInfo.OutboundEnforcementCap":            {acts, "The same for packets that leave.", "internal/manager/facts OfGuard"},
	"smp.SwitchInfo.FilterRawInboundCap":               {acts, "Raw packets that come in are dropped where the switch can.", "internal/manager/desired FilterRaw"},
	"smp.SwitchInfo.FilterRawOutboundCap":              {acts, "The same for packets that leave.", "internal/manager/desired FilterRaw"},
	"smp.SwitchInfo.EnhancedPort0":                     {acts, "Port 0 is given as many LIDs as an end port, and is a port that packets can be for.", "internal/manager/desired newLIDSpace"},
	"smp.SwitchInfo.OptimizedSLToVLMappingProgramming": {acts, "Bit 0: one write sets SLToVLMappingTable for all input ports.", "internal/manager/plan diffSLToVL"},
	"smp.PortInfoExtended.CapMask":                     {shown, "Bit 0: the other fields mean something. The manager sets no error correction: devices choose it when the link trains.", ""},

	"mad.ClassCapTraps":           {shown, "The manager takes traps of subnet management only.", ""},
	"mad.ClassCapNotice":          {shown, "The manager reads notices of subnet management only.", ""},
	"mad.ClassCapCapabilityMask2": {acts, "Without it CapabilityMask2 means nothing; ibwarden's SA sets it.", "internal/perfmgr capabilityOf"},

	"pm.CapAllPortSelect":       {ignored, "Counters are read and set back port by port: a sum says nothing about a cable.", ""},
	"pm.CapExtendedWidth":       {acts, "PortCountersExtended is read, with the counters of unicast and multicast.", "internal/perfmgr capabilityOf"},
	"pm.CapExtendedWidthTotals": {acts, "PortCountersExtended is read, without the counters of unicast and multicast.", "internal/perfmgr capabilityOf"},
	"pm.CapPortXmitWait":        {acts, "PortXmitWait is counted only where it is there.", "internal/perfmgr capabilityOf"},
	"pm.CapQP1Dropped":          {acts, "QP1Dropped is counted only where it is there.", "internal/perfmgr capabilityOf"},
	"pm.Cap2ExtendedErrors":     {acts, "The errors of PortCountersExtended are read instead of those of PortCounters, which stop early.", "internal/perfmgr capabilityOf"},

	"sa.CapOptionalRecords":      {acts, "ibwarden's SA announces it: it answers optional records.", "internal/sa/server classPortInfo"},
	"sa.CapUDMulticast":          {acts, "ibwarden's SA announces it: it keeps multicast groups.", "internal/sa/server classPortInfo"},
	"sa.CapMultiPath":            {acts, "ibwarden's SA announces it: it answers MultiPathRecord.", "internal/sa/server classPortInfo"},
	"sa.CapReinit":               {ignored, "ibwarden's SA does not announce it: nothing is kept for a port that starts again.", ""},
	"sa.CapGIDScopedMultiPath":   {ignored, "ibwarden's SA does not announce it: it looks at the GIDs of a query, not at a scope of them.", ""},
	"sa.CapPortInfoCapMaskMatch": {acts, "ibwarden's SA announces it: a query can ask for ports that have certain capabilities.", "internal/sa/server classPortInfo"},
	"sa.CapLinkSpeedWidthPairs":  {ignored, "ibwarden's SA does not announce it: the record is not in the codec.", ""},
	"sa.CapPAServices":           {ignored, "ibwarden's SA does not announce it: the codec has no records for it.", ""},
	"sa.Cap2SendOnlyFull":        {acts, "ibwarden's SA announces it: it knows members that only send.", "internal/sa/server classPortInfo"},
}

// capability is a bit that the codec knows.
type capability struct {
	key   string // of decisions
	group string // the heading of its table
	bit   int    // -1: the field is the bit
	name  string // as `ibwarden device get` prints it; empty where it prints none
}

// groups are the tables of the page in order, by package and type; fields go by their structure.
var groups = []struct{ of, heading string }{
	{"smp.CapabilityMask", "PortInfo.CapabilityMask"},
	{"smp.CapabilityMask2", "PortInfo.CapabilityMask2"},
	{"smp.SwitchInfo", "SwitchInfo"},
	{"smp.PortInfoExtended", "PortInfoExtended"},
	{"mad.ClassCapability", "ClassPortInfo.CapabilityMask of every class"},
	{"pm.ClassCapability", "ClassPortInfo.CapabilityMask of performance management"},
	{"pm.ClassCapability2", "ClassPortInfo.CapabilityMask2 of performance management"},
	{"sa.ClassCapability", "ClassPortInfo.CapabilityMask of subnet administration"},
	{"sa.ClassCapability2", "ClassPortInfo.CapabilityMask2 of subnet administration"},
}

// capabilities finds them in the codec's source: the constants of the types of the masks, and the
// fields of SwitchInfo that are one bit, but PortStateChange, which is no capability.
func capabilities(t *testing.T) (out []capability) {
	t.Helper()
	from := importer.ForCompiler(token.NewFileSet(), "source", nil)
	masks := []string{"ib/smp.CapabilityMask", "ib/smp.CapabilityMask2", "ib/mad.ClassCapability", "ib/mad.ClassCapability2"}
	for _, name := range []string{"smp", "mad", "pm", "sa"} {
		pkg, err := from.Import(module + "ib/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range pkg.Scope().Names() {
			c, ok := pkg.Scope().Lookup(id).(*types.Const)
			if !ok || !slices.Contains(masks, strings.TrimPrefix(c.Type().String(), module)) {
				continue
			}
			v, exact := constant.Uint64Val(c.Val())
			if !exact || bits.OnesCount64(v) != 1 {
				t.Errorf("%s.%s is no single bit: %s", name, id, c.Val())
			}
			of := name + "." + path.Ext(c.Type().String())[1:]
			out = append(out, capability{name + "." + id, of, bits.TrailingZeros64(v), printed(of, v)})
		}
		if name != "smp" {
			continue
		}
		for _, field := range []string{"SwitchInfo", "PortInfoExtended"} {
			s := pkg.Scope().Lookup(field).Type().Underlying().(*types.Struct)
			for i := range s.NumFields() {
				f := s.Field(i)
				isBit := field == "SwitchInfo" && f.Type() == types.Typ[types.Bool] && f.Name() != "PortStateChange"
				if isBit || f.Name() == "OptimizedSLToVLMappingProgramming" || f.Name() == "CapMask" {
					out = append(out, capability{"smp." + field + "." + f.Name(), "smp." + field, -1, f.Name()})
				}
			}
		}
	}
	return out
}

// printed is how `ibwarden device get` names a bit.
func printed(of string, v uint64) string {
	switch of {
	case "smp.CapabilityMask":
		return smp.CapabilityMask(v).Names()[0]
	case "smp.CapabilityMask2":
		return smp.CapabilityMask2(v).Names()[0]
	case "mad.ClassCapability", "pm.ClassCapability":
		for _, x := range pm.Explain(&mad.ClassPortInfo{CapabilityMask: mad.ClassCapability(v)}) {
			if x.Name == "CapabilityMask" {
				return x.Meaning
			}
		}
	}
	return ""
}

// aside are the wings whose use of a bit is no decision of ibwarden's: the codec, what simulates
// devices, and what is built on both.
var aside = []string{"ib", "internal/sim", "internal/simserve", "internal/lab", "test", "examples", "website", "packaging", "kubernetes"}

// uses are the functions that use each bit: "package Function".
func uses(t *testing.T, of []capability) map[string][]string {
	t.Helper()
	keys := map[string]string{} // by package and constant, or by field
	for _, c := range of {
		name := c.key
		if c.bit < 0 {
			name = c.name
		}
		keys[name] = c.key
	}
	out := map[string][]string{}
	for _, s := range sources(t) {
		if slices.ContainsFunc(aside, func(w string) bool { return inside(s.pkg, w) }) {
			continue
		}
		for _, d := range s.file.Decls {
			where := s.pkg
			if f, ok := d.(*ast.FuncDecl); ok {
				where += " " + f.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				x, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				key := keys[x.Sel.Name]
				if pkg, ok := x.X.(*ast.Ident); ok {
					key = cmp.Or(key, keys[pkg.Name+"."+x.Sel.Name])
				}
				if key != "" {
					out[key] = append(out[key], where)
				}
				return true
			})
		}
	}
	return out
}

// TestCapabilities checks that each capability bit of the codec has a decision which is true: what
// acts on it uses it, and nothing uses one that is only shown, or ignored. The page is made of them.
func TestCapabilities(t *testing.T) {
	all := capabilities(t)
	used := uses(t, all)
	known := map[string]bool{}
	for _, c := range all {
		known[c.key] = true
		d, has := decisions[c.key]
		switch {
		case !has:
			t.Errorf("%s has no decision: add it to decisions, and run go test ./test/archtest -update", c.key)
		case len(d.why) < 20 || !strings.HasSuffix(d.why, "."):
			t.Errorf("%s: %q is no reason: want a sentence", c.key, d.why)
		case d.what == acts && !slices.Contains(used[c.key], d.at):
			t.Errorf("%s: %q does not use it; what does: %v", c.key, d.at, used[c.key])
		case (d.what == shown || d.what == ignored) && (d.at != "" || len(used[c.key]) > 0):
			t.Errorf("%s is %s, but %q is to act on it, and it is used by %v", c.key, d.what, d.at, used[c.key])
		case d.what != acts && d.what != shown && d.what != ignored:
			t.Errorf("%s: %q is no decision: want acts, shown or ignored", c.key, d.what)
		}
		if strings.HasPrefix(c.name, "bit ") {
			t.Errorf("%s: `ibwarden device get` prints it as %q: give it a name in package smp", c.key, c.name)
		}
	}
	for key := range decisions {
		if !known[key] {
			t.Errorf("%s has a decision, and the codec does not know it", key)
		}
	}
	if !t.Failed() {
		checkCapabilityPage(t, all)
	}
}

// checkCapabilityPage compares the tables of docs/dev/capabilities.md with the decisions.
func checkCapabilityPage(t *testing.T, all []capability) {
	file := filepath.Join("..", "..", "docs", "dev", "capabilities.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), "<!-- capabilities -->\n")
	_, after, ends := strings.Cut(rest, "<!-- end of capabilities -->")
	if !ok || !ends {
		t.Fatal("docs/dev/capabilities.md has no tables between its two marks")
	}
	count := map[string]int{}
	for _, d := range decisions {
		count[d.what]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s<!-- capabilities -->\n%d bits: ibwarden acts on %d, shows %d, and ignores %d for a reason.\n\n",
		before, len(all), count[acts], count[shown], count[ignored])
	rows := 0
	for _, g := range groups {
		of := slices.DeleteFunc(slices.Clone(all), func(c capability) bool { return c.group != g.of })
		slices.SortStableFunc(of, func(a, b capability) int { return cmp.Compare(a.bit, b.bit) })
		fmt.Fprintf(&b, "## %s\n\n| bit | name | decision | what is done, or why not |\n|---|---|---|---|\n", g.heading)
		for _, c := range of {
			rows++
			d, bit := decisions[c.key], "-"
			if c.bit >= 0 {
				bit = fmt.Sprint(c.bit)
			}
			if pkg, function, ok := strings.Cut(d.at, " "); ok {
				d.why += " `" + pkg + "` `" + function + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", bit, cmp.Or(c.name, "`"+c.key+"`"), d.what, d.why)
		}
		b.WriteString("\n")
	}
	if rows != len(all) {
		t.Errorf("%d bits have a table, want %d: groups lacks one", rows, len(all))
	}
	b.WriteString("<!-- end of capabilities -->" + after)
	if b.String() == string(page) {
		return
	}
	if !*update {
		t.Fatal("docs/dev/capabilities.md does not have the decisions of capability_test.go: go test ./test/archtest -update")
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}
