package metrics

import (
	"fmt"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// Metrics of who is in charge.
var (
	fabricMasters  = gauge("ibwarden_fabric_masters", "", "Subnet managers that say that they are master, this and untrusted ones included. 1 is right.")
	masterChanges  = counter("ibwarden_master_changes_total", "", "Changes of master that this manager saw.")
	masterFlapping = gauge("ibwarden_master_flapping", "", "1 after 4 changes of master within 10 minutes, until 10 minutes without one.")
	otherPolicies  = gauge("ibwarden_managers_other_policy", "", "Subnet managers that share the secret and have proved that they have another policy.")
	policyGuarded  = gauge("ibwarden_policy_guarded", "", "1 after a takeover from a manager with another policy, until the policy is read again; until then no port is given what the tables did not hold.")
	writesHalted   = gauge("ibwarden_writes_halted", "", "1 while this manager is master and has had no right to write to the fabric for 3 s.")
	subnetManager  = gauge("ibwarden_subnet_manager_info", "", "Always 1; a subnet manager of the fabric: port, node description, state (unknown if it does not answer), priority, and trust (self, shared, listed, none). At most 64, trusted ones first.", "port_guid", "node", "state", "priority", "trust")
)

// SubnetManager is a subnet manager that is known, as labels.
type SubnetManager struct{ Port, Node, State, Priority, Trust string }

// managersMax is how many managers have samples of their own: any number of hosts may say
// that they have one.
const managersMax = 64

// CopyManagers enters the managers that are known.
func (s *State) CopyManagers(known []observed.SubnetManager) {
	for _, counts := range []bool{true, false} {
		for i := range known {
			m := &known[i]
			if m.Counts() != counts || len(s.Managers) == managersMax {
				continue
			}
			x := SubnetManager{Port: m.Port.String(), Node: label(m.Name), State: "unknown", Trust: string(m.Trust)}
			if m.Answered && m.Missed == 0 {
				x.State, x.Priority = StateName(m.State), fmt.Sprint(m.Priority)
			}
			s.Managers = append(s.Managers, x)
		}
	}
}

func (o sink) inCharge(s *State) {
	if len(s.Managers) == 0 {
		return // the subnet was not read yet
	}
	o.put(fabricMasters, float64(s.Charge.Masters))
	o.put(masterFlapping, one(s.Charge.Flapping))
	o.put(otherPolicies, float64(s.Charge.OtherPolicies))
	o.put(policyGuarded, one(s.Manager.Guards))
	o.put(writesHalted, one(s.Manager.Halted))
	seen := make(map[string]bool, len(s.Managers))
	for _, m := range s.Managers {
		if !seen[m.Port] { // two ports may claim one GUID
			seen[m.Port] = true
			o.put(subnetManager, 1, m.Port, m.Node, m.State, m.Priority, m.Trust)
		}
	}
}
