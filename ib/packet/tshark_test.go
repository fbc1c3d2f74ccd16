package packet

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// start is the time of the first packet of the test captures.
var start = time.Unix(1_700_000_000, 123_456_789)

// expected is a field that tshark should show.
type expected struct {
	packet string // name of the packet
	field  string // name in the golden packets
	tshark string // name in tshark
	first  int    // first byte in the packet
	last   int    // last byte in the packet
	width  int    // in bits
	value  *big.Int
}

func (e expected) key() string { return e.packet + " " + e.field }

func expect(packet, field, name string, bit, width int, v []byte) expected {
	return expected{
		packet: packet, field: field, tshark: name,
		first: bit / 8, last: (bit + width - 1) / 8, width: width,
		value: new(big.Int).SetBytes(v),
	}
}

// sample is a packet of the capture and what tshark should show of it.
type sample struct {
	packet   []byte
	expected []expected
}

func (s *sample) expectCRCs(name string, icrc, vcrc []byte) {
	end := 8 * (len(s.packet) - VCRCSize)
	s.expected = append(s.expected, expect(name, "VCRC", "infiniband.variant.crc", end, 16, vcrc))
	if icrc != nil {
		s.expected = append(s.expected, expect(name, "ICRC", "infiniband.invariant.crc", end-32, 32, icrc))
	}
}

func vectorSamples(t *testing.T) []sample {
	var samples []sample
	for _, vec := range allVectors(t) {
		s := sample{packet: vec.Packet}
		add := func(field, name string, bit, width int, v []byte, err error) {
			if err != nil {
				t.Fatal(err)
			}
			if name != "" {
				s.expected = append(s.expected, expect(vec.Name, field, name, bit, width, v))
			}
		}
		for _, f := range vec.HeaderFields {
			v, err := f.Bytes()
			add(f.Name, f.TShark, 8*vec.MADOffset+f.MADBit, f.Width, v, err)
		}
		for _, f := range vec.Fields {
			v, err := f.Bytes()
			if vec.MAD != nil {
				add(f.Name, f.TShark, 8*vec.MADOffset+f.MADBit, f.Width, v, err)
			} else {
				add(f.Header+"."+f.Name, f.TShark, 8*f.Byte+f.Bit, f.Width, v, err)
			}
		}
		s.expectCRCs(vec.Name, vec.ICRC, vec.VCRC)
		samples = append(samples, s)
	}
	return samples
}

// builtSamples are packets of every opcode, with and without a GRH, that this
// package lays out and fills with random values. tshark tries the payload of
// other protocols on them and loses the end of a packet that is too short.
func builtSamples(t *testing.T) []sample {
	const seed = 2
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	listed := headerFields(t)
	var samples []sample
	for _, o := range slices.Sorted(maps.Keys(opCodeTable(t))) {
		for _, global := range []bool{false, true} {
			var payload []byte
			if o.HasPayload() {
				payload = bytes.Repeat([]byte{0xAB}, 32+random.IntN(8))
			}
			p, v, err := Append(nil, o, global, payload)
			if err != nil {
				t.Fatal(err)
			}
			s := sample{packet: p}
			name := fmt.Sprintf("built %v GRH %v", o, global)
			at := 0
			for _, h := range parts(&v) {
				for _, f := range listed[h.name] {
					if f.TShark == "" {
						continue
					}
					a := accessors[h.name][f.Name]
					if !isLayout(h.name, f.Name) {
						a.set(h.bytes, value{8: byte(random.Uint32()), 14: byte(random.Uint32()), 15: byte(random.Uint32())})
					}
					want := a.get(h.bytes)
					s.expected = append(s.expected, expect(name, h.name+"."+f.Name, f.TShark, 8*at+f.Bit, f.Width, want[:]))
				}
				at += len(h.bytes)
			}
			if err := Seal(p); err != nil {
				t.Fatal(err)
			}
			if o.Transport() != RD { // where tshark finds the end of a packet by chance only
				s.expectCRCs(name, v.ICRC[:], v.VCRC[:])
			}
			samples = append(samples, s)
		}
	}
	return samples
}

// isLayout reports whether the field says how the packet is laid out.
func isLayout(header, field string) bool {
	return slices.Contains([]string{
		"LRH.LVer", "LRH.LNH", "LRH.PktLen", "GRH.IPVer", "GRH.PayLen", "GRH.NxtHdr",
		"BTH.OpCode", "BTH.PadCnt", "BTH.TVer",
	}, header+"."+field)
}

// shown is what tshark shows of one field.
type shown struct {
	Name  string `xml:"name,attr"`
	Pos   int    `xml:"pos,attr"`
	Size  int    `xml:"size,attr"`
	Show  string `xml:"show,attr"`
	Value string `xml:"value,attr"`
}

// dissect has tshark read a capture and lists the fields of each packet.
func dissect(t *testing.T, raw []byte) []map[string][]shown {
	t.Helper()
	tshark := need.Program(t, "tshark")
	dir := t.TempDir()
	file := filepath.Join(dir, "test.pcap")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), tshark, "-n", "-r", file, "-T", "pdml")
	cmd.Env = append(os.Environ(), "WIRESHARK_CONFIG_DIR="+dir) // no preferences of whoever runs the test
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, stderr.String())
	}
	var packets []map[string][]shown
	d := xml.NewDecoder(bytes.NewReader(out))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return packets
		}
		if err != nil {
			t.Fatalf("tshark's output: %v", err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "packet":
			packets = append(packets, map[string][]shown{})
		case "field":
			f := parseShown(t, e)
			packets[len(packets)-1][f.Name] = append(packets[len(packets)-1][f.Name], f)
		}
	}
}

func parseShown(t *testing.T, e xml.StartElement) (f shown) {
	for _, a := range e.Attr {
		var err error
		switch a.Name.Local {
		case "name":
			f.Name = a.Value
		case "show":
			f.Show = a.Value
		case "value":
			f.Value = a.Value
		case "pos":
			_, err = fmt.Sscan(a.Value, &f.Pos)
		case "size":
			_, err = fmt.Sscan(a.Value, &f.Size)
		}
		if err != nil {
			t.Fatalf("tshark's output: %s=%q: %v", a.Name.Local, a.Value, err)
		}
	}
	return f
}

// value is the number that tshark shows. It lists the bytes that it read the
// field from, or for some fields of a few bits the bytes around them; the
// number is then in the text for people.
func (f shown) value(width int) (*big.Int, error) {
	v, ok := new(big.Int).SetString(f.Value, 16)
	if ok && v.BitLen() > width {
		v, ok = new(big.Int).SetString(f.Show, 0)
	}
	if !ok {
		return nil, fmt.Errorf("%s is %q (%s), want a number", f.Name, f.Value, f.Show)
	}
	return v, nil
}

// difference says how what tshark shows differs from e, "" when it does not.
func difference(e expected, packet map[string][]shown) string {
	for _, f := range packet[e.tshark] {
		if f.Pos > e.first || f.Pos+f.Size <= e.last {
			continue
		}
		v, err := f.value(e.width)
		if err != nil {
			return err.Error()
		}
		if v.Cmp(e.value) != 0 {
			return fmt.Sprintf("%s is 0x%x, want 0x%x", e.tshark, v, e.value)
		}
		return ""
	}
	return fmt.Sprintf("%s is not shown, want 0x%x", e.tshark, e.value)
}

// withRID names the SA vectors whose record begins with an identifier.
const withRID = `SA_(GUIDInfo|InformInfo|LinearForwardingTable|Link|MCMember|MulticastForwardingTable|Node|` +
	`P_KeyTable|RandomForwardingTable|SLtoVLMappingTable|Service|VLArbitrationTable)Record`

// withShortRID names those whose identifier is as long as the ICRC.
const withShortRID = `SA_(PortInfo|SMInfo|SwitchInfo)Record`

// dissectorFaults are the fields that tshark 4.0 shows wrong or not at all:
// what is wrong with it, and the packets and fields that show it.
var dissectorFaults = []struct {
	fault  string
	fields *regexp.Regexp
}{
	{
		"RRespTime and RMPPFlags are taken as 4 and 4 bits instead of 5 and 3",
		regexp.MustCompile(`^(` + withRID + `|` + withShortRID + `|SA_(Path|Trace)Record) RMPP\.(RRespTime|RMPPFlags)$`),
	},
	{
		"only the first half of the masks of a MulticastForwardingTable is shown",
		regexp.MustCompile(`^(SA_)?MulticastForwardingTable(Record)? PortMask\[(1[6-9]|2[0-9]|3[01])\]$`),
	},
	{
		"two fields of trap 259 are declared too long, so the trap is taken for malformed",
		regexp.MustCompile(`^Notice259 (DataValid|LIDADDR[12]|PKEY|SL|QP[12]|GIDADDR[12]|SWLIDADDR|PORTNO|ICRC|VCRC)$`),
	},
	{
		"the direction bit is looked for above the byte that was read",
		regexp.MustCompile(`^DR_NodeInfo_returning SMP\.D$`),
	},
	{
		"RD opcodes are taken for those of a vendor",
		regexp.MustCompile(`^(HDR_RD|built RD) ?.* (RDETH|DETH|RETH|AtomicETH|AETH|AtomicAckETH)\.`),
	},
	{
		"the identifier of a record is counted twice, so the end of the packet is not found",
		regexp.MustCompile(`^` + withRID + ` (ICRC|VCRC)$`),
	},
	{
		"as before, but the VCRC is met by chance",
		regexp.MustCompile(`^` + withShortRID + ` ICRC$`),
	},
	{
		"the length of the counters is counted twice, so the end of the packet is not found",
		regexp.MustCompile(`^PM_PortCounters(Extended)? (ICRC|VCRC)$`),
	},
}

// TestTSharkAgrees writes the golden packets and packets of its own to a
// capture and compares what tshark reads in it. The listed faults of tshark
// must show: an exception that is not needed any more is an error.
func TestTSharkAgrees(t *testing.T) {
	samples := append(vectorSamples(t), builtSamples(t)...)
	var file bytes.Buffer
	c, err := NewCaptureWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range samples {
		if err := c.WritePacket(start.Add(time.Duration(i)), s.packet); err != nil {
			t.Fatal(err)
		}
	}
	packets := dissect(t, file.Bytes())
	if len(packets) != len(samples) {
		t.Fatalf("tshark shows %d packets, want %d", len(packets), len(samples))
	}
	compared := 0
	seen := make([]int, len(dissectorFaults))
	for i, s := range samples {
		at := start.Add(time.Duration(i))
		want := fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond())
		if epoch := packets[i]["frame.time_epoch"]; len(epoch) != 1 || epoch[0].Show != want {
			t.Errorf("packet %d at %v, want %s", i, epoch, want)
		}
		for _, e := range s.expected {
			compared++
			d := difference(e, packets[i])
			known := slices.IndexFunc(dissectorFaults, func(f struct {
				fault  string
				fields *regexp.Regexp
			}) bool {
				return f.fields.MatchString(e.key())
			})
			switch {
			case known < 0 && d != "":
				t.Errorf("%s: %s", e.key(), d)
			case known >= 0 && d == "":
				t.Errorf("%s: tshark is right, so it is no example of %q", e.key(), dissectorFaults[known].fault)
			case known >= 0:
				seen[known]++
			}
		}
	}
	for i, n := range seen {
		if n == 0 {
			t.Errorf("no field shows the fault %q", dissectorFaults[i].fault)
		}
	}
	t.Logf("%d fields compared, %d for each known fault of tshark", compared, seen)
}
