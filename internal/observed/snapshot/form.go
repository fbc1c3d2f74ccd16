package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// The lines of the file; doc.go says what they mean.
type (
	head struct {
		Version int       `json:"ibwarden_snapshot"`
		ReadAt  time.Time `json:"read_at"`
		Source  string    `json:"source"`
		Asked   []string  `json:"asked"`
		Nodes   int       `json:"nodes"`
		Self    *place    `json:"self,omitempty"`
		Faults  []Fault   `json:"faults"`
		Hidden  bool      `json:"keys_concealed,omitempty"`
	}
	place struct {
		Node guid       `json:"node"`
		Port ib.PortNum `json:"port"`
	}
	nodeLine struct {
		Node *node `json:"node"`
	}
	node struct {
		Info        []byte   `json:"info"`
		Description string   `json:"description,omitempty"`
		Contested   bool     `json:"contested,omitempty"`
		Ports       []port   `json:"ports"`
		Answers     []answer `json:"answers"`
	}
	port struct {
		Port    ib.PortNum `json:"port"`
		GUID    guid       `json:"guid,omitzero"`
		Route   *[]int     `json:"route,omitempty"`
		Peer    *place     `json:"peer,omitempty"`
		Silent  bool       `json:"silent,omitempty"`
		Forgets []string   `json:"forgets,omitempty"`
		// Stranger is who answered behind the port and was not let in.
		Stranger *stranger `json:"stranger,omitempty"`
	}
	stranger struct {
		Info       []byte `json:"info"`
		Why        string `json:"why"`
		Undeclared bool   `json:"undeclared,omitempty"`
	}
	answer struct {
		Port      ib.PortNum `json:"port"`
		Attribute string     `json:"attribute"`
		Modifiers []uint32   `json:"modifiers"`
		Data      []byte     `json:"data"`
		Stale     bool       `json:"stale,omitempty"`
	}
	endLine struct {
		End struct {
			Nodes int `json:"nodes"`
		} `json:"end"`
	}
)

// guid is a GUID of a node or of a port, as text.
type guid uint64

// MarshalText prints 0x and 16 digits.
func (g guid) MarshalText() ([]byte, error) { return ib.NodeGUID(g).MarshalText() }

// UnmarshalText reads what MarshalText prints.
func (g *guid) UnmarshalText(text []byte) error {
	v, err := ib.ParseNodeGUID(string(text))
	*g = guid(v)
	return err
}

// chain adds up the lines of a file.
type chain [sha256.Size]byte

const (
	sumBytes = 8
	sumField = `,"sum":"`
	sumTail  = len(sumField) + 2*sumBytes + len(`"}`)
)

// add takes in a line without its sum and returns the sum.
func (c *chain) add(body []byte) string {
	h := sha256.New()
	h.Write(c[:])
	h.Write(body)
	h.Sum(c[:0])
	return hex.EncodeToString(c[:sumBytes])
}
