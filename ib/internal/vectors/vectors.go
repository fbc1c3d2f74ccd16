package vectors

import (
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"path"
	"strings"
)

//go:embed testdata/*.json
var files embed.FS

// Vector is one golden packet.
type Vector struct {
	Name        string
	Description string
	Packet      []byte // LRH to VCRC

	// Of a management packet; zero in a transport vector.
	MAD                  []byte
	MADOffset            int // of the datagram, in Packet, in bytes
	Attribute            []byte
	AttributeOffsetInMAD int
	HeaderFields         []Field // of the datagram's headers; Bit counts from the start of MAD

	// Of a transport vector; zero in a management packet.
	Headers []string
	Payload []byte
	Pad     int

	ICRC   []byte // as on the wire; nil for a raw packet
	VCRC   []byte
	Fields []Field // of the attribute, or of the transport headers
}

// Field is one field of a header or attribute. Bits are numbered from the
// most significant bit of the first byte, which is 0.
type Field struct {
	Name   string
	Header string // transport header it belongs to
	Byte   int    // start of that header in Packet
	Bit    int    // first bit, from the start of the header or attribute
	Width  int    // in bits
	Value  string // hexadecimal, with 0x
	MADBit int    // first bit, from the start of MAD
	TShark string // name in tshark, when it has one
}

// Uint is the value of a field of up to 64 bits.
func (f Field) Uint() (uint64, error) {
	v, err := f.big()
	if err != nil || !v.IsUint64() {
		return 0, fmt.Errorf("field %s: value %q is not a number of 64 bits", f.Name, f.Value)
	}
	return v.Uint64(), nil
}

// Bytes is the value of a field as Width/8 bytes, rounded up.
func (f Field) Bytes() ([]byte, error) {
	v, err := f.big()
	size := (f.Width + 7) / 8
	if err != nil || v.BitLen() > f.Width {
		return nil, fmt.Errorf("field %s: value %q is not a number of %d bits", f.Name, f.Value, f.Width)
	}
	return v.FillBytes(make([]byte, size)), nil
}

func (f Field) big() (*big.Int, error) {
	v, ok := new(big.Int).SetString(f.Value, 0)
	if !ok || v.Sign() < 0 {
		return nil, fmt.Errorf("field %s: value %q is not a number", f.Name, f.Value)
	}
	return v, nil
}

// Load reads the vector of the given name, the file name without ".json".
func Load(name string) (Vector, error) {
	data, err := files.ReadFile(path.Join("testdata", name+".json"))
	if err != nil {
		return Vector{}, fmt.Errorf("vector %s: %w", name, err)
	}
	v, err := parse(data)
	if err != nil {
		return Vector{}, fmt.Errorf("vector %s: %w", name, err)
	}
	return v, nil
}

// All reads every vector, in order of name.
func All() ([]Vector, error) {
	entries, err := files.ReadDir("testdata")
	if err != nil {
		return nil, fmt.Errorf("vectors: %w", err)
	}
	all := make([]Vector, 0, len(entries))
	for _, e := range entries {
		v, err := Load(strings.TrimSuffix(e.Name(), ".json"))
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// hexBytes is a hexadecimal string in the file.
type hexBytes []byte

func (o *hexBytes) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	*o = b
	return err
}

type fileField struct {
	Name   string `json:"name"`
	Header string `json:"header"`
	Byte   int    `json:"byte"`
	Bit    int    `json:"bit"`
	Width  int    `json:"width"`
	Value  string `json:"value"`
	MADBit int    `json:"madbit"`
	TShark string `json:"tshark"`
}

func parse(data []byte) (Vector, error) {
	var f struct {
		Name                 string      `json:"name"`
		Description          string      `json:"description"`
		Packet               hexBytes    `json:"packet"`
		MAD                  hexBytes    `json:"mad"`
		MADOffset            int         `json:"mad_offset"`
		Attribute            hexBytes    `json:"attribute"`
		AttributeOffsetInMAD int         `json:"attribute_offset_in_mad"`
		HeaderFields         []fileField `json:"header_fields"`
		Headers              []string    `json:"headers"`
		Payload              hexBytes    `json:"payload"`
		Pad                  int         `json:"pad"`
		ICRC                 hexBytes    `json:"icrc"`
		VCRC                 hexBytes    `json:"vcrc"`
		Fields               []fileField `json:"fields"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return Vector{}, err
	}
	return Vector{
		Name: f.Name, Description: f.Description, Packet: f.Packet,
		MAD: f.MAD, MADOffset: f.MADOffset,
		Attribute: f.Attribute, AttributeOffsetInMAD: f.AttributeOffsetInMAD,
		HeaderFields: fields(f.HeaderFields),
		Headers:      f.Headers, Payload: f.Payload, Pad: f.Pad,
		ICRC: f.ICRC, VCRC: f.VCRC, Fields: fields(f.Fields),
	}, nil
}

func fields(in []fileField) []Field {
	out := make([]Field, len(in))
	for i, f := range in {
		out[i] = Field(f)
	}
	return out
}
