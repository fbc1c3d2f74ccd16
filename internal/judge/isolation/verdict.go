package isolation

import "fmt"

// Verdict is the answer of a proof. Higher values are worse; the zero value is
// no answer and reads as Unknown does.
type Verdict uint8

// The verdicts, from best to worst.
const (
	// Isolated: who can talk is within the policy, and stays within the
	// partitions of the policy when hosts forge their own tables.
	Isolated Verdict = iota + 1
	// Unguarded: as Isolated, but a host could change that: a port takes the
	// writes of strangers, or a cable between switches is not on a list
	// (Proof.Changeable).
	Unguarded
	// ByEndPorts: every end port's table is right, but somewhere no switch
	// would hold a host that forges its own, or that sends packets without a key.
	ByEndPorts
	// NoPolicy: no policy was given, and not all hosts can talk with all others
	// (ProveWithoutPolicy).
	NoPolicy
	// Unknown: something that the answer rests on was not read.
	Unknown
	// Open: no policy was given, and every host can talk with every other.
	Open
	// Violated: two ports can talk that the policy keeps apart.
	Violated
)

// String is the verdict as it stands in reports.
func (v Verdict) String() string {
	switch v {
	case Isolated:
		return "isolated"
	case Unguarded:
		return "isolated-unguarded"
	case ByEndPorts:
		return "isolated-by-end-ports"
	case NoPolicy:
		return "no-policy"
	case Open:
		return "open"
	case Violated:
		return "violated"
	}
	return "unknown"
}

// MarshalText prints the verdict as String does.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what MarshalText prints.
func (v *Verdict) UnmarshalText(text []byte) error {
	for c := Isolated; c <= Violated; c++ {
		if c.String() == string(text) {
			*v = c
			return nil
		}
	}
	return fmt.Errorf("verdict %q: want isolated, isolated-unguarded, isolated-by-end-ports, no-policy, unknown, open or violated", text)
}

// Holds reports whether the policy holds as the fabric stands: Isolated,
// Unguarded or ByEndPorts. Without a policy nothing holds.
func (v Verdict) Holds() bool { return v == Isolated || v == Unguarded || v == ByEndPorts }
