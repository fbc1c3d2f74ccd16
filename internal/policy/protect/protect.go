// Package protect names the protection profiles: how far a manager trusts the hosts on
// its fabric.
//
// A Profile is a configuration value. Its methods say what each profile requires of the
// manager, of subnet administration and of devices; docs/security.md explains it.
package protect

import "fmt"

// Profile is a level of protection. Each includes the one before it.
type Profile uint8

const (
	// None takes hosts, devices and other managers at their word. It is for
	// tests, and to show what the others stop.
	None Profile = iota
	// Basic guards every port with an M_Key of its own and holds to the cables
	// that were declared; everybody may read what devices hold.
	Basic
	// Tenant is for hosts whose root is not trusted: nobody reads or writes a
	// device without its key, and hosts ask of subnet administration only what
	// is their own.
	Tenant
	// Strict also fences a port behind which a manager shows that nobody named.
	Strict
)

// Default is the profile of a manager that was told of none.
const Default = Tenant

var names = [...]string{None: "none", Basic: "basic", Tenant: "tenant", Strict: "strict"}

// String is the name as it stands in flags and reports.
func (p Profile) String() string {
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("invalid profile %d", uint8(p))
}

// MarshalText prints the profile as String does.
func (p Profile) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Parse reads the name of a profile that a person may choose: basic, tenant or
// strict.
func Parse(name string) (Profile, error) {
	for p := Basic; p <= Strict; p++ {
		if names[p] == name {
			return p, nil
		}
	}
	return None, fmt.Errorf("profile %q: want basic, tenant or strict", name)
}

// MKeyProtectBits is the PortInfo.M_KeyProtectBits that guarded ports get: at 1
// the key is hidden and everything else can be read, at 2 nothing can be read
// without it (PortInfo, Table 29-3).
func (p Profile) MKeyProtectBits() uint8 {
	if p >= Tenant {
		return 2
	}
	return 1
}
