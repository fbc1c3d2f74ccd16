package smp

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/vectors"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// bareName is a name as it is compared with those of the golden packets.
func bareName(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "[", "", "]", "", ".", "").Replace(s))
}

// What Explain says of a golden packet is its fields in their order, which tshark and libibmad read
// the same way; a secret key is not told.
func TestExplainGolden(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, v vectors.Vector, data []byte) {
		if c.name == "NodeDescription" || c.name == "P_KeyTable" {
			return // a text; keys that the golden packet has in two parts (TestMeanings)
		}
		a := decode(t, c, data)
		var got []string
		for _, x := range Explain(a, 0) {
			if x.Value == "not shown" {
				continue
			}
			n, ok := new(big.Int).SetString(fmt.Sprint(x.Value), 0)
			if !ok {
				continue // a GID
			}
			got = append(got, n.Text(16))
		}
		for _, f := range v.Fields {
			if strings.HasPrefix(f.Name, "Reserved") || strings.Contains(bareName(f.Name), "mkey") || strings.Contains(bareName(f.Name), "smkey") || strings.Contains(bareName(f.Name), "gid") {
				continue
			}
			n, ok := new(big.Int).SetString(f.Value, 0)
			if !ok {
				t.Fatalf("%s: %q", f.Name, f.Value)
			}
			i := slices.Index(got, n.Text(16))
			if i < 0 {
				t.Errorf("%s is %s, and Explain has no such value", f.Name, f.Value)
				continue
			}
			got = slices.Delete(got, i, i+1)
		}
	})
}

// Whatever bytes a device answers with, every field is told, a secret key never, and every value that
// is not told by its type has the width of its field.
func TestExplainAnything(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for _, d := range Attributes() {
		for round := range 200 {
			data := make([]byte, mad.DataSize)
			for i := range data {
				if data[i] = byte(r.Uint32()); round == 0 {
					data[i] = 0xFF
				}
			}
			a, err := Decode(d.ID, data)
			if err != nil {
				t.Fatal(err)
			}
			list := Explain(a, 0)
			if len(list) == 0 {
				t.Errorf("%s: nothing is told", d.Name)
			}
			secret := ""
			switch d.ID {
			case AttrPortInfo:
				secret = fmt.Sprintf("%x", data[:8])
			case AttrSMInfo:
				secret = fmt.Sprintf("%x", data[8:16])
			}
			for _, x := range list {
				if text := strings.ToLower(fmt.Sprint(x.Value, x.Meaning)); round > 0 && secret != "" && strings.Contains(text, secret) {
					t.Errorf("seed %d: %s.%s tells the key", seed, d.Name, x.Name)
				}
			}
		}
	}
}

// The wrong M_Key that a trap tells of may be nearly the right one.
func TestExplainTrapOfAKey(t *testing.T) {
	n, err := NewTrap(TrapBadMKey, ProducerCA, 3, &BadMKeyDetails{LID: 9, MKey: 0x0123456789abcdef})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range Explain(&n, 0) {
		if strings.Contains(fmt.Sprint(x.Value), "123456789abcdef") {
			t.Errorf("%s is %v", x.Name, x.Value)
		}
	}
}

func TestMeanings(t *testing.T) {
	info := PortInfo{
		PortState: PortActive, NeighborMTU: ib.MTU2048, CapabilityMask: CapTrapSupported | 1, DiagCode: 0x8013, MKeyLeasePeriod: 60, LMC: 2,
		VLCap: 4, VLHighLimit: 255, HOQLife: 20, SubnetTimeOut: 18, PKeyViolations: 0xFFFF, MKeyProtectBits: 1, LinkWidthEnabled: LinkWidthAll, MKey: 5,
	}
	want := map[string]string{
		"PortState": "Active", "NeighborMTU": "2048 bytes", "CapabilityMask": "bit 0, IsTrapSupported", "DiagCode": "soft error, port works; see VendorDiag[1]",
		"MKeyLeasePeriod": "60 s without its owner", "LMC": "4 LIDs", "VLCap": "VL0 to VL7", "VLHighLimit": "no limit", "HOQLife": "no limit", "SubnetTimeOut": "1.073741824s",
		"PKeyViolations": "it stopped here: set it to 0 and it counts again", "QKeyViolations": "packets", "LinkWidthEnabled": "all that are supported",
		"MKeyProtectBits": "without the M_Key: everything may be read but the M_Key; nothing set", "MKey": "a secret; ibwarden keys export writes it to a file",
	}
	for _, x := range Explain(&info, 0) {
		if w, has := want[x.Name]; has && x.Meaning != w {
			t.Errorf("%s: %q, want %q", x.Name, x.Meaning, w)
		}
		delete(want, x.Name)
	}
	if len(want) > 0 {
		t.Errorf("not told: %v", want)
	}
	keys := Explain(&PKeyTable{Keys: [PKeysPerBlock]ib.PKey{0x8010, 0x0011}}, PKeyModifier(3, 2))
	for i, w := range []ib.Explained{{Name: "Keys[64]", Value: "0x8010", Meaning: "full member of 0x0010"}, {Name: "Keys[65]", Value: "0x0011", Meaning: "limited member of 0x0011"}, {Name: "Keys[66]", Value: "0x0000", Meaning: "empty"}} {
		if keys[i] != w {
			t.Errorf("%+v, want %+v", keys[i], w)
		}
	}
	groups := Explain(&MulticastForwardingTable{Masks: [MLIDsPerBlock]uint16{0x8001}}, MFTModifier(1, 2))
	if w := (ib.Explained{Name: "Masks[49184]", Value: "0x8001", Meaning: "to ports 32, 47"}); groups[0] != w {
		t.Errorf("%+v, want %+v", groups[0], w)
	}
}
