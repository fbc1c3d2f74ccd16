package takeovertest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// state is what every device holds, by place and by name of the setting.
type state map[string]string

// counts are fields that move by themselves.
var counts = []string{"MKeyViolations", "PKeyViolations", "QKeyViolations", "LocalPortNum"}

// groups are the multicast LIDs that are looked at.
const groups = 64

// read is the state of a fabric.
func (r *rig) read() state {
	r.Helper()
	s := state{}
	r.do(func(f *fabric.Fabric) {
		var top ib.LID
		for _, n := range r.topology.Nodes {
			a := f.Agent(n.GUID)
			for num := range n.NumPorts() + 1 {
				if p := a.Port(ib.PortNum(num)); p != nil {
					top = max(top, p.LID)
				}
			}
		}
		for _, n := range r.topology.Nodes {
			a := f.Agent(n.GUID)
			for num := range n.NumPorts() + 1 {
				p := a.Port(ib.PortNum(num))
				if p == nil {
					continue
				}
				at := fmt.Sprintf("%s %s port %d", role(n, num), n.ID, num)
				s.fields(at+": ", *p)
				keys := a.PKeys(ib.PortNum(num))
				for len(keys) > 0 && keys[len(keys)-1] == 0 {
					keys = keys[:len(keys)-1]
				}
				s[at+": P_KeyTable"] = fmt.Sprint(keys)
			}
			if info := a.SwitchInfo(); info != nil {
				s.fields("switch "+n.ID+": ", *info)
				for lid := ib.LID(1); lid <= top; lid++ {
					exit, ok := a.UnicastExit(1, lid)
					s[fmt.Sprintf("switch %s: route to LID %d", n.ID, lid)] = fmt.Sprint(exit, ok)
				}
				for lid := range ib.LID(groups) {
					exits := a.MulticastExits(0, ib.LIDMulticastMin+lid)
					s[fmt.Sprintf("switch %s: group at LID %#x", n.ID, uint16(ib.LIDMulticastMin+lid))] = fmt.Sprint(exits)
				}
			}
		}
	})
	return s
}

// role is what a port is for.
func role(n *topology.Node, num int) string {
	switch far := n.Ports[num].Peer; {
	case n.Type != ib.NodeSwitch:
		return "host"
	case num == 0:
		return "switch's own port"
	case far == nil:
		return "switch port without a cable"
	case far.Type == ib.NodeSwitch:
		return "switch port to a switch"
	}
	return "switch port to a host"
}

func (s state) fields(at string, info any) {
	v := reflect.ValueOf(info)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && !slices.Contains(counts, f.Name) {
			s[at+f.Name] = fmt.Sprint(v.Field(i).Interface())
		}
	}
}

// differences are the settings that are others, each with what it was and is.
func (s state) differences(now state) (out []string) {
	for _, at := range slices.Sorted(maps.Keys(s)) {
		if s[at] != now[at] {
			out = append(out, fmt.Sprintf("%s was %s, is %s", at, s[at], now[at]))
		}
	}
	return out
}

// sorts are differences by kind of port and name of the setting, with how many there are.
func (s state) sorts(now state) map[string]int {
	out := map[string]int{}
	for at := range s {
		if s[at] == now[at] {
			continue
		}
		place, name, _ := strings.Cut(at, ": ")
		what := place
		for _, k := range []string{"host", "switch's own port", "switch port without a cable", "switch port to a switch", "switch port to a host"} {
			if strings.HasPrefix(place, k+" ") {
				what = k
			}
		}
		if what == place {
			what = "switch"
		}
		for _, k := range []string{"route to LID", "group at LID"} {
			if strings.HasPrefix(name, k) {
				name = k
			}
		}
		out[what+": "+name]++
	}
	return out
}
