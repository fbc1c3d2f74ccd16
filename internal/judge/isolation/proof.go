package isolation

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Bounds of the lists in a Proof, in elements. Proof.Counts is not bounded.
const (
	// MaxPartitionsListed is the number of partitions up to which Proof.Pairs
	// holds every pair; beyond, it holds only those that are not isolated.
	MaxPartitionsListed = 64
	// MaxPairs bounds Proof.Pairs beyond MaxPartitionsListed partitions.
	MaxPairs = 2048
	// MaxWitnesses bounds Proof.Violations and Proof.Exposed.
	MaxWitnesses = 256
	// MaxWitnessesPerKey bounds the witnesses that ports of one table give for
	// one key, so that a single port does not hide the others.
	MaxWitnessesPerKey = 16
	// MaxListed bounds Missing, Foreign, Unenforced, Raw, Changeable and Unknown, each.
	MaxListed = 1024
)

// Proof is the answer to whether a fabric keeps to a policy.
type Proof struct {
	Verdict Verdict `json:"verdict"`
	// Pairs holds the verdict on each pair of partitions, ordered by P_Key:
	// all of them up to MaxPartitionsListed partitions, else those that are
	// not isolated, the worst first.
	Pairs []PairVerdict `json:"pairs"`
	// Reasons says in words why the verdict is not Isolated, the worst first.
	Reasons []string `json:"reasons"`
	// Caveats says what the verdict leaves to the hosts by its definition.
	Caveats []string `json:"caveats"`
	// Violations are pairs of end ports that can talk and may not.
	Violations []Violation `json:"violations"`
	// Exposed are pairs of end ports that could talk and may not, if a host
	// forged its table: its switch port enforces a table that is too wide.
	Exposed []Violation `json:"exposed"`
	// Missing are keys that the policy gives and a table lacks, so that
	// members cannot talk. They do not weigh on the verdict.
	Missing []MissingKey `json:"missing"`
	// Foreign are entries that the policy does not give, whether or not any port can use
	// them. In the table of a switch port only the partition counts. They affect the
	// verdict only where another port can be reached.
	Foreign []Entry `json:"foreign"`
	// Unenforced are the places where no switch holds an end port to its
	// partitions: the switch port, or the end port when there is no switch.
	Unenforced []Finding `json:"unenforced"`
	// Raw are the switch ports that let raw packets pass, from or to an end port that is
	// kept apart from another whose switch port lets them pass too; the end port when
	// there is no switch. Empty for RawIgnored and RawAllowed.
	Raw []Finding `json:"raw"`
	// Changeable are the places where a host could change what was proved, once
	// Rest has entered them.
	Changeable []Finding `json:"changeable"`
	// Unknown are the reads that the proof lacks.
	Unknown []Finding `json:"unknown"`
	// SharedPorts are the end ports that can talk to others which cannot talk to
	// each other, ordered by GUID.
	SharedPorts []SharedPort `json:"shared_ports"`
	Counts      Counts       `json:"counts"`
	// Ports are the verdicts on single end ports; VerdictOn finds one.
	Ports PortVerdicts `json:"-"`
	// Managers are the end ports that Heed was told of.
	Managers []ib.PortGUID `json:"-"`
	// Over are the partitions with a key over which two end ports can talk against the policy
	// (Violated), or could if one forged its table (ByEndPorts).
	Over map[ib.PKeyBase]Verdict `json:"-"`
	// Outdated reports whether Outdate has made it Unknown.
	Outdated bool `json:"-"`
}

// Common is the verdict by what concerns every end port: what was not read, or too long ago, where
// nothing is enforced, and where a host could change what was proved. What single ports can do
// against the policy, or could, is left out: VerdictOn and Over have that.
func (p *Proof) Common() Verdict {
	c := &p.Counts
	switch {
	case p.Outdated || c.Unknown > 0 || c.EndPorts == 0:
		return Unknown
	case c.Unenforced > 0 || c.Raw > 0:
		return ByEndPorts
	case c.Changeable > 0:
		return Unguarded
	}
	return Isolated
}

// Counts is the size of what was judged and found.
type Counts struct {
	EndPorts   int        `json:"end_ports"`
	Partitions int        `json:"partitions"`
	Pairs      PairCounts `json:"pairs"`
	// Violations and Exposed count each pair of end ports once for each
	// partition that it can talk over.
	Violations int `json:"violations"`
	Exposed    int `json:"exposed"`
	Missing    int `json:"missing"`
	Foreign    int `json:"foreign"`
	Unenforced int `json:"unenforced"`
	// Raw counts the pairs of end ports, sender and receiver, that raw packets can
	// go between and that the policy keeps apart; RawPlaces is the length of Proof.Raw.
	Raw       int `json:"raw"`
	RawPlaces int `json:"raw_places"`
	Unknown   int `json:"unknown"`
	// Changeable counts the places where a host could change what was proved.
	Changeable  int      `json:"changeable"`
	SharedPorts int      `json:"shared_ports"`
	Keys        KeyPorts `json:"-"`
}

// KeyPorts counts end ports by what is wrong with their keys, in their own table or in that of
// the switch port that holds them.
type KeyPorts struct {
	// Missing lack a key that the policy gives them; Unexpected have one of a partition that
	// they are not in, or are not full members of; Unknown have one of a partition that the policy does not
	// have at all, and are in Unexpected too.
	Missing, Unexpected, Unknown int
}

// PairCounts counts the pairs of partitions of each verdict.
type PairCounts struct {
	Isolated   int `json:"isolated"`
	ByEndPorts int `json:"isolated-by-end-ports"`
	Unknown    int `json:"unknown"`
	Violated   int `json:"violated"`
}

// PairVerdict says whether members of A and of B talk only as allowed.
type PairVerdict struct {
	A       string      `json:"a"`
	B       string      `json:"b"`
	PKeyA   ib.PKeyBase `json:"pkey_a"`
	PKeyB   ib.PKeyBase `json:"pkey_b"`
	Verdict Verdict     `json:"verdict"`
	// Joined reports whether the policy itself joins the two: they share a port, or
	// members of both share a partition in which one side has a full member. The
	// manager's own port, which may be in all of them, does not count. It is worked out up to MaxPartitionsListed partitions.
	Joined bool   `json:"joined"`
	Reason string `json:"reason"`
}

// Violation is a witness: two end ports, the key and the entry at fault.
type Violation struct {
	// From is the port whose keys are too wide, To the one it can talk to; the
	// relation itself is symmetric.
	From ib.PortGUID `json:"from"`
	To   ib.PortGUID `json:"to"`
	PKey ib.PKey     `json:"pkey"`
	// Path leads from From to To as the forwarding tables stand; as far as it
	// goes when there is no route.
	Path []Hop `json:"path"`
	// At is the entry at fault.
	At Entry `json:"at"`
	// Note says what stops the packets today; empty when nothing does.
	Note string `json:"note"`
}

// Place is a port, as a person and a program find it.
type Place struct {
	Node ib.NodeGUID `json:"node"`
	Port ib.PortNum  `json:"port"`
	Name string      `json:"name"`
}

func placeOf(p *observed.Port) Place {
	return Place{Node: p.Node.GUID(), Port: p.Num, Name: p.String()}
}

// Entry is an element of a P_Key table.
type Entry struct {
	Place
	// EndPort is the end port that the table is about: its own, or the one
	// behind the switch port.
	EndPort ib.PortGUID `json:"end_port"`
	Index   int         `json:"index"`
	PKey    ib.PKey     `json:"pkey"`
}

// MissingKey is a key that a table should hold and does not.
type MissingKey struct {
	Place
	EndPort ib.PortGUID `json:"end_port"`
	PKey    ib.PKey     `json:"pkey"`
}

// Finding is a place and what is the matter there.
type Finding struct {
	Place
	Reason string `json:"reason"`
}
