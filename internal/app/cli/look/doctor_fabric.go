package look

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// unreadMax bounds the places that are listed; there is a count of all.
const unreadMax = 8

// Survey is what was read of a fabric.
type Survey struct {
	Nodes    int `json:"nodes"`
	Switches int `json:"switches"`
	CAs      int `json:"cas"`
	Routers  int `json:"routers"`
	Links    int `json:"links"`
	// Unread are places that could not be read, the first of them, and Faults counts all.
	// Silent is how many of those did not answer.
	Unread []Unread `json:"unread"`
	Faults int      `json:"faults"`
	Silent int      `json:"silent"`
	// Locked counts the end ports that conceal an M_Key that is not known here.
	Locked int `json:"locked"`
	// Keys is how many P_Keys the smallest table of an end port holds; 0 without end ports.
	Keys int `json:"keys"`
	// Managers are the subnet managers of the fabric.
	Managers []SubnetManager `json:"managers"`
}

// Unread is a place that could not be read.
type Unread struct {
	Where string `json:"where"`
	Why   string `json:"why"`
}

// SubnetManager is a subnet manager of the fabric.
type SubnetManager struct {
	Name     string `json:"name"`
	Port     string `json:"port"`
	LID      int    `json:"lid"`
	State    string `json:"state"`
	Priority int    `json:"priority"`
	// Here reports whether it is behind the port from which the fabric was read.
	Here bool `json:"here"`
}

// SurveyOf sums up what was read.
func SurveyOf(f *observed.Fabric, faults []sweep.Fault, managers []observed.SubnetManager) *Survey {
	c := f.Count()
	s := &Survey{Nodes: c.Nodes, Switches: c.Switches, CAs: c.CAs, Routers: c.Routers, Links: c.Links, Unread: []Unread{}, Managers: []SubnetManager{}}
	for _, x := range faults {
		if errors.Is(x, sweep.ErrUndeclared) || errors.Is(x, sweep.ErrDiagnosis) {
			continue // it was read
		}
		s.Faults++
		if errors.Is(x, transact.ErrNoAnswer) {
			s.Silent++
		}
		if len(s.Unread) < unreadMax {
			s.Unread = append(s.Unread, Unread{names.Printable(x.Where), names.Printable(x.Err.Error())})
		}
	}
	for i, p := range f.EndPorts() {
		if p.InfoRead && p.Info.MKeyProtectBits != 0 && p.Info.MKey == 0 {
			s.Locked++
		}
		if n := p.PKeyCap(); i == 0 || n < s.Keys {
			s.Keys = n
		}
	}
	for i := range managers {
		m := &managers[i]
		x := SubnetManager{Name: names.Printable(m.Name), Port: m.Port.String(), LID: int(m.LID), State: "silent", Here: f.Self != nil && f.Self.GUID == m.Port}
		if m.Answered {
			x.State, x.Priority = m.State.String(), int(m.Priority)
		}
		s.Managers = append(s.Managers, x)
	}
	return s
}

// fabric tells what was read.
func (r *DoctorReport) fabric(s *Survey) {
	subject := "fabric " + r.Fabric
	size := fmt.Sprintf("%d nodes (%d switches, %d channel adapters, %d routers) and %d links", s.Nodes, s.Switches, s.CAs, s.Routers, s.Links)
	where := []string{}
	for _, u := range s.Unread {
		where = append(where, u.Where+": "+u.Why)
	}
	if n := s.Faults - len(s.Unread); n > 0 {
		where = append(where, fmt.Sprintf("and %d more", n))
	}
	unread := strings.Join(where, "; ")
	switch {
	case s.Nodes == 0:
		r.add(Missing, subject, "nothing answered, not even this port ("+unread+"): guarded by M_Keys that this command does not have, or it hangs. A manager of ibwarden keeps its keys in its data directory, and ibwarden keys exec runs diagnostics with them on its host; OpenSM keeps its keys in guid2mkey",
			doctorCommand("ibwarden doctor --fabric %s --data DIR", r.Fabric), doctorCommand("ibwarden doctor --fabric %s --m-key-file FILE", r.Fabric))
		return
	case s.Faults == 0:
		r.add(OK, subject, size+"; every device answered")
	default:
		r.add(Warning, subject, fmt.Sprintf("%s; places that could not be read: %d, of which %d gave no answer: guarded by M_Keys that this command does not have, or the device hangs. %s",
			size, s.Faults, s.Silent, unread), doctorCommand("ibwarden snapshot --fabric %s -o now.snap", r.Fabric))
	}
	if s.Locked == 0 {
		r.add(OK, "M_Keys", "no end port that answered conceals a key that is not known here")
	} else {
		r.add(Warning, "M_Keys", fmt.Sprintf("%d end ports conceal their M_Key: they can be read and not written. OpenSM keeps its keys in guid2mkey", s.Locked),
			doctorCommand("ibwarden audit --fabric %s --m-key-file FILE", r.Fabric), "ibwarden keys import /var/cache/opensm/guid2mkey --data DIR")
	}
	if s.Keys > 0 {
		r.add(OK, "P_Key tables", fmt.Sprintf("the smallest of an end port holds %d keys", s.Keys))
	}
	r.managers(s)
}

// managers tells who manages the fabric.
func (r *DoctorReport) managers(s *Survey) {
	masters := 0
	list := doctorCommand("ibwarden show managers --fabric %s", r.Fabric)
	for _, m := range s.Managers {
		text := fmt.Sprintf("%s at port GUID %s, LID %d, is %s, priority %d", m.Name, m.Port, m.LID, m.State, m.Priority)
		switch {
		case m.State == "silent":
			r.add(Warning, "subnet manager", fmt.Sprintf("%s at port GUID %s says that it has one, which does not answer", m.Name, m.Port), list)
			continue
		case m.State == "master":
			masters++
		}
		if m.Here {
			text += ", at the port that was read from"
		}
		r.add(OK, "subnet manager", text)
	}
	switch masters {
	case 0:
		r.add(Warning, "subnet manager", "none is master: ports that are in INIT stay there until one is", doctorCommand("ibwarden plan --fabric %s --policy policy.yaml", r.Fabric))
	case 1:
	default:
		r.add(Warning, "subnet manager", fmt.Sprintf("%d are master: parts of a fabric were joined, or one is an attacker's", masters), list)
	}
}
