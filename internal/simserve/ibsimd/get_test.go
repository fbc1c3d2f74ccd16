package ibsimd_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/test/need"
)

// getFabric is small, with its manager at the first node, and what getPolicy asks of it leaves little at zero.
const (
	getFabric = `Hca 1 "mgmt"
[1] "sw"[1]

Switch 8 "sw"
[1] "mgmt"[1]
[2] "h1"[1]
[3] "h2"[1]

Hca 1 "h1"
[1] "sw"[2]

Hca 1 "h2"
[1] "sw"[3]
`
	getPolicy = `version: 1
descriptions: trusted
default: limited
groups:
  red: ["h1*", "h2*"]
partitions:
  - {name: red, pkey: 0x0010, members: {full: [red]}}
settings:
  qos: true
  qos_sl2vl: "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,15"
  qos_high_limit: 7
  qos_vlarb_high: "1:9,2:4"
  qos_vlarb_low: "0:3,3:1"
`
)

// verdictWithin is how long a bring-up of getFabric may take; it takes a second or two.
const verdictWithin = time.Minute

// gotten are the attributes that tshark reads, of devices that have them; without groups
// MulticastForwardingTable has nothing to compare.
var gotten = map[string][]string{
	"mgmt": {"SMInfo", "NodeInfo", "PortInfo"},
	"h1":   {"NodeInfo", "PortInfo", "GUIDInfo", "PKeyTable", "SLToVLMappingTable", "VLArbitrationTable"},
	"sw":   {"NodeInfo", "SwitchInfo", "PortInfo", "GUIDInfo", "PKeyTable", "LinearForwardingTable"},
	"sw:2": {"PortInfo", "PKeyTable", "SLToVLMappingTable", "VLArbitrationTable"},
}

// tsharkNames has get's name of a field for the one of tshark, where they differ by more than
// underscores and the case of letters. A table's entries have one name.
var tsharkNames = map[string]string{
	"portinfo.guid": "gidprefix", "switchinfo.enhancedportzero": "enhancedport0", "switchinfo.guid": "guids",
	"sltovlmappingtable.sltovlhighbits": "vls", "sltovlmappingtable.sltovllowbits": "vls",
	"vlarbitrationtable.vl": "entries.vl", "vlarbitrationtable.weight": "entries.weight",
	"linearforwardingtable.port": "ports",
}

// values are those of fields by name, which entries of a table share.
type values map[string][]uint64

type gotBlock struct {
	Modifier string
	Old      bool
	Fields   []struct {
		Name  string
		Value any
	}
}

// values are those of the fields that are numbers; secrets are not.
func (b *gotBlock) values() values {
	out := values{}
	for _, f := range b.Fields {
		name, entry, _ := strings.Cut(f.Name, "[")
		_, part, _ := strings.Cut(entry, "]")
		if n, err := strconv.ParseUint(fmt.Sprint(f.Value), 0, 64); err == nil {
			out[strings.ToLower(name+part)] = append(out[strings.ToLower(name+part)], n)
		}
	}
	return out
}

// pdml is a field as tshark prints it.
type pdml struct {
	Name   string `xml:"name,attr"`
	Value  string `xml:"value,attr"`
	Fields []pdml `xml:"field"`
}

func (p *pdml) find(name string) *pdml {
	for i := range p.Fields {
		if p.Fields[i].Name == name {
			return &p.Fields[i]
		}
		if q := p.Fields[i].find(name); q != nil {
			return q
		}
	}
	return nil
}

// values are those of the attribute, with P_Keys in one piece, as get has them.
func (p *pdml) values(t *testing.T) values {
	t.Helper()
	out := values{}
	var add func(list []pdml)
	add = func(list []pdml) {
		for _, f := range list {
			attribute, name, _ := strings.Cut(strings.TrimPrefix(f.Name, "infiniband."), ".")
			switch {
			case name == "p_keytableblock" || name == "smpdata" || name == "":
				add(f.Fields) // what is below says it again, or it is a heading
				continue
			case name == "m_key" || name == "sm_key":
				continue // a secret
			}
			n, err := strconv.ParseUint(f.Value, 16, 64)
			if err != nil {
				t.Fatalf("tshark: %s is %q", f.Name, f.Value)
			}
			if other := tsharkNames[attribute+"."+name]; other != "" {
				name = other
			}
			switch name = strings.ReplaceAll(name, "_", ""); name {
			case "membershiptype":
				out["keys"] = append(out["keys"], n<<15)
			case "pkeybase":
				out["keys"][len(out["keys"])-1] |= n
			default:
				out[name] = append(out[name], n)
			}
		}
	}
	add(p.Fields)
	return out
}

// differences are the fields of tshark in which get says something else.
func (v values) differences(got values) (out []string) {
	for name, want := range v {
		if !slices.Equal(got[name], want) {
			out = append(out, fmt.Sprintf("%s is %x, tshark says %x", name, got[name], want))
		}
	}
	slices.Sort(out)
	return out
}

// Of a fabric with the tenant profile get prints the same from the devices and from the service that
// manages them, and tshark reads the same in a capture: of each block one of the answers agrees in
// all fields.
func TestGetAgreesWithTshark(t *testing.T) {
	need.Long(t, "programs that wait for their time-outs")
	tshark := need.Program(t, "tshark")
	path, err := ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	dir := workDir(t)
	write := func(name, text string) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	capture, socket := filepath.Join(dir, "capture.pcapng"), filepath.Join(dir, "service.sock")
	sim := simulate(t, "--capture", capture, write("fabric.net", getFabric))
	warden := exec.Command(path, "run", "--fabric", "ibsim:"+sim.name, "--data", "data", "--socket", socket, "--policy", write("policy.yaml", getPolicy),
		"--quarantine", "0s", "--guard-period", "1h", "--sweep-interval", "1h", "--drift-period", "1h")
	tame(warden, dir)
	var said need.Log
	warden.Stdout, warden.Stderr = &said, &said
	if err := warden.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = warden.Process.Kill() // it has no more to do
		_ = warden.Wait()
	}()
	need.Eventually(t, verdictWithin, "there is a verdict", func() bool { return strings.Contains(said.String(), "verdict: isolated") })
	get := func(device, attribute string, from ...string) (d struct{ Blocks []gotBlock }) {
		t.Helper()
		cmd := exec.Command(path, append([]string{"get", device, attribute, "--json"}, from...)...)
		cmd.Dir = dir
		var trouble strings.Builder
		cmd.Stderr = &trouble
		out, err := cmd.Output()
		if err != nil || json.Unmarshal(out, &d) != nil || len(d.Blocks) == 0 {
			t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, trouble.String())
		}
		return d
	}
	type block struct {
		device, attribute string
		gotBlock
	}
	var blocks []block
	for device, attributes := range gotten {
		for _, attribute := range attributes {
			asked := get(device, attribute, "--fabric", "ibsim:"+sim.name, "--data", "data").Blocks
			for _, b := range asked {
				blocks = append(blocks, block{device, attribute, b})
			}
			held := get(device, attribute, "--server", "unix:"+socket).Blocks
			if len(held) != len(asked) {
				t.Errorf("%s of %s: %d blocks of the service, %d of the device", attribute, device, len(held), len(asked))
				continue
			}
			for i := range held {
				x, y := held[i].values(), asked[i].values()
				for _, v := range []values{x, y} {
					delete(v, "actcount")         // it goes on
					delete(v, "clientreregister") // the answer to a Set has it, which the service keeps
				}
				if held[i].Old || !reflect.DeepEqual(x, y) {
					t.Errorf("%s of %s: the service says\n%v, the device\n%v", attribute, device, held[i], asked[i])
				}
			}
		}
	}
	sim.end(t)
	answers := readAnswers(t, tshark, capture)
	for _, b := range blocks {
		got, found := b.values(), false
		var closest []string
		for _, want := range answers[b.attribute+" "+b.Modifier] {
			if d := want.differences(got); !found || len(d) < len(closest) {
				closest, found = d, true
			}
		}
		if !found || len(closest) > 0 {
			t.Errorf("%s %s of %s: an answer is in the capture: %v; of the closest one %q", b.attribute, b.Modifier, b.device, found, closest)
		}
	}
}

// readAnswers are what tshark reads of each answer of subnet management that has an attribute, by its
// name and modifier.
func readAnswers(t *testing.T, tshark, capture string) map[string][]values {
	t.Helper()
	out, err := exec.Command(tshark, "-r", capture, "-Y", "infiniband.mad.method == 0x81 && infiniband.smplid.smpdata && !(infiniband.mad.status & 0x7fff)", "-T", "pdml").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Packets []struct {
			Protos []pdml `xml:"proto"`
		} `xml:"packet"`
	}
	if err := xml.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, d := range smp.Attributes() {
		for _, attributes := range gotten {
			if slices.Contains(attributes, d.Name) {
				names[fmt.Sprintf("%04x", uint16(d.ID))] = d.Name
			}
		}
	}
	answers := map[string][]values{}
	for _, p := range all.Packets {
		packet := pdml{Fields: p.Protos}
		name := names[packet.find("infiniband.mad.attributeid").Value]
		if data := packet.find("infiniband.smplid.smpdata"); name != "" && data != nil {
			v := data.values(t)
			if len(v) == 0 {
				t.Fatalf("tshark reads nothing of a %s: %+v", name, data)
			}
			at := name + " 0x" + packet.find("infiniband.mad.attributemodifier").Value
			answers[at] = append(answers[at], v)
		}
	}
	return answers
}
