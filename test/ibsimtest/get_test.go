package ibsimtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// queried has smpquery's name of a field for the one of `ibwarden device get`.
var queried = map[string]map[string]string{
	"NodeInfo": {
		"BaseVers": "BaseVersion", "ClassVers": "ClassVersion", "NodeType": "NodeType", "NumPorts": "NumPorts", "SystemGuid": "SystemImageGUID",
		"Guid": "NodeGUID", "PortGuid": "PortGUID", "PartCap": "PartitionCap", "DevId": "DeviceID", "Revision": "Revision", "LocalPort": "LocalPortNum", "VendorId": "VendorID",
	},
	"SwitchInfo": {
		"LinearFdbCap": "LinearFDBCap", "RandomFdbCap": "RandomFDBCap", "McastFdbCap": "MulticastFDBCap", "LinearFdbTop": "LinearFDBTop", "DefPort": "DefaultPort",
		"DefMcastPrimPort": "DefaultMulticastPrimaryPort", "DefMcastNotPrimPort": "DefaultMulticastNotPrimaryPort", "LifeTime": "LifeTimeValue",
		"StateChange": "PortStateChange", "OptSLtoVLMapping": "OptimizedSLToVLMappingProgramming", "LidsPerPort": "LIDsPerPort", "PartEnforceCap": "PartitionEnforcementCap",
		"InboundPartEnf": "InboundEnforcementCap", "OutboundPartEnf": "OutboundEnforcementCap", "FilterRawInbound": "FilterRawInboundCap",
		"FilterRawOutbound": "FilterRawOutboundCap", "EnhancedPort0": "EnhancedPort0", "MulticastFDBTop": "MulticastFDBTop",
	},
	"PortInfo": {
		"GidPrefix": "GIDPrefix", "Lid": "LID", "SMLid": "MasterSMLID", "CapMask": "CapabilityMask", "DiagCode": "DiagCode", "MkeyLeasePeriod": "MKeyLeasePeriod",
		"LocalPort": "LocalPortNum", "LinkWidthEnabled": "LinkWidthEnabled", "LinkWidthSupported": "LinkWidthSupported", "LinkWidthActive": "LinkWidthActive",
		"LinkSpeedSupported": "LinkSpeedSupported", "LinkState": "PortState", "PhysLinkState": "PortPhysicalState", "LinkDownDefState": "LinkDownDefaultState",
		"ProtectBits": "MKeyProtectBits", "LMC": "LMC", "LinkSpeedActive": "LinkSpeedActive", "LinkSpeedEnabled": "LinkSpeedEnabled", "NeighborMTU": "NeighborMTU",
		"SMSL": "MasterSMSL", "VLCap": "VLCap", "InitType": "InitType", "VLHighLimit": "VLHighLimit", "VLArbHighCap": "VLArbitrationHighCap", "VLArbLowCap": "VLArbitrationLowCap",
		"InitReply": "InitTypeReply", "MtuCap": "MTUCap", "VLStallCount": "VLStallCount", "HoqLife": "HOQLife", "OperVLs": "OperationalVLs",
		"PartEnforceInb": "PartitionEnforcementInbound", "PartEnforceOutb": "PartitionEnforcementOutbound", "FilterRawInb": "FilterRawInbound", "FilterRawOutb": "FilterRawOutbound",
		"MkeyViolations": "MKeyViolations", "PkeyViolations": "PKeyViolations", "QkeyViolations": "QKeyViolations", "GuidCap": "GUIDCap",
		"ClientReregister": "ClientReregister", "McastPkeyTrapSuppressionEnabled": "MulticastPKeyTrapSuppressionEnabled", "SubnetTimeout": "SubnetTimeOut",
		"RespTimeVal": "RespTimeValue", "LocalPhysErr": "LocalPhyErrors", "OverrunErr": "OverrunErrors", "MaxCreditHint": "MaxCreditHint", "RoundTrip": "LinkRoundTripLatency",
		"CapabilityMask2": "CapabilityMask2", "LinkSpeedExtActive": "LinkSpeedExtActive", "LinkSpeedExtSupported": "LinkSpeedExtSupported", "LinkSpeedExtEnabled": "LinkSpeedExtEnabled",
	},
}

// queriedLine is "Name:......value"; the dots are missing behind a long name.
var queriedLine = regexp.MustCompile(`(?m)^(\w+):\.*([^\s.].*)$`)

type gotField struct {
	Name    string
	Value   any
	Meaning string
}

// get is `ibwarden device get DEVICE ATTRIBUTE --json`, its fields by name.
func (r *rig) get(device, attribute string) map[string]gotField {
	r.Helper()
	o := r.warden("device", "get", device, attribute, "--json", "--fabric", "ibsim:"+r.sim.Name)
	var d struct{ Blocks []struct{ Fields []gotField } }
	if o.status != 0 || json.Unmarshal([]byte(o.stdout), &d) != nil || len(d.Blocks) == 0 {
		r.Fatalf("get %s %s: exit status %d\n%s%s", device, attribute, o.status, o.stdout, o.stderr)
	}
	out := map[string]gotField{}
	for _, b := range d.Blocks {
		for _, f := range b.Fields {
			out[f.Name] = f
		}
	}
	return out
}

// says reports whether a field says what smpquery says: the same number, or the same words.
func (f gotField) says(text string) bool {
	value := fmt.Sprint(f.Value)
	a, errA := strconv.ParseUint(value, 0, 64)
	b, errB := strconv.ParseUint(text, 0, 64)
	if errA == nil && errB == nil && a == b {
		return true
	}
	words := strings.NewReplacer("VL0 to VL", "VL0-", " bytes", "").Replace(f.Meaning)
	none := (strings.HasPrefix(text, "No ") || strings.HasPrefix(text, "Extended") || strings.HasPrefix(text, "undefined") || strings.HasPrefix(text, "IBA extended")) && f.Meaning == "none"
	return none || strings.EqualFold(words, text) || text == "Channel Adapter" && words == "CA"
}

// Every field that Debian's smpquery prints of the attributes of a fabric that ibwarden has brought up
// is what get prints: both ask the agents of ibsim, which are neither's.
func TestGetAgreesWithSmpquery(t *testing.T) {
	l := topologyOf(t, "fattree,radix=6,levels=2")
	r := newRig(t, l, "")
	r.bringUp(r.file("policy.conf", "Default=0x7fff,ipoib:ALL=full;\n"))
	compared := 0
	for _, e := range r.model.ends[:4] {
		device := guidText(e.guid)
		for attribute, names := range queried {
			if attribute == "SwitchInfo" {
				continue
			}
			args := []string{"-D", strings.ToLower(attribute), e.place.path}
			if attribute == "PortInfo" {
				args = append(args, strconv.Itoa(e.place.port))
			}
			compared += r.compare(device, attribute, names, args)
		}
		keys, err := r.pkeys(e.place, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := r.get(device, "PKeyTable")
		for i, key := range keys {
			if f := got[fmt.Sprintf("Keys[%d]", i)]; !f.says(fmt.Sprintf("0x%04x", key)) {
				t.Errorf("%s: P_Key %d: %v, smpquery says 0x%04x", device, i, f, key)
			}
		}
		if e.facing != nil {
			compared += r.compare(r.switchOf(e), "SwitchInfo", queried["SwitchInfo"], []string{"-D", "switchinfo", e.facing.path})
		}
	}
	if compared < 200 {
		t.Errorf("%d fields were compared", compared)
	}
}

// switchOf names the switch before an end port by what smpquery says of it.
func (r *rig) switchOf(e *endPort) string {
	r.Helper()
	text, err := r.umad(r.tools.SMPQuery, "-D", "nodeinfo", e.facing.path)
	if err != nil {
		r.Fatal(err)
	}
	for _, m := range queriedLine.FindAllStringSubmatch(text, -1) {
		if m[1] == "Guid" {
			return m[2]
		}
	}
	r.Fatalf("no GUID in %s", text)
	return ""
}

// compare returns how many fields it compared.
func (r *rig) compare(device, attribute string, names map[string]string, args []string) (n int) {
	r.Helper()
	text, err := r.umad(r.tools.SMPQuery, args...)
	if err != nil {
		r.Fatal(err)
	}
	got := r.get(device, attribute)
	for _, m := range queriedLine.FindAllStringSubmatch(text, -1) {
		name, known := names[m[1]]
		if m[1] == "Mkey" { // a secret
			continue
		}
		if !known {
			r.Errorf("%s: smpquery has %s, for which this test has no name", attribute, m[1])
			continue
		}
		if n++; !got[name].says(m[2]) {
			r.Errorf("%s of %s: %s is %v (%s), smpquery says %s", attribute, device, name, got[name].Value, got[name].Meaning, m[2])
		}
	}
	return n
}
