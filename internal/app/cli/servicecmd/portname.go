package servicecmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// portHelp says what a command takes for PORT.
const portHelp = `
PORT is a GUID, the place where the port is cabled (SWITCH:PORT, the switch by its name or node GUID),
or the name of its node, or of its host, if that has one port. A name is what the host says of itself, which
its root can change: a command that changes something by a name shows which port that is, and asks,
with --yes too.
`

// ports finds end ports by GUID, by place, or by the name of their node, and asks for consent to a
// name: what a host says of itself gives it nothing without somebody who has seen which port it is.
func (f *writeFlags) ports(c *cobra.Command, to *client.Client, args []string) ([]api.GUID, error) {
	guids, named, err := findPorts(c, to, args)
	if err == nil && len(named) > 0 && !f.dryRun {
		for _, line := range named {
			fmt.Fprintln(c.ErrOrStderr(), line)
		}
		err = Ask(c.Context(), c.InOrStdin(), c.ErrOrStderr())
	}
	return guids, err
}

// findPorts finds end ports, and says of each that was found by the name of its node which one it is.
func findPorts(c *cobra.Command, to *client.Client, args []string) (guids []api.GUID, named []string, err error) {
	var list []views.Port // read when something else than GUIDs is given
	for _, text := range args {
		guid, noGUID := readGUID(text)
		if noGUID != nil {
			if list == nil {
				if list, err = client.All[views.Port](c.Context(), to, "/ports", nil); err != nil {
					return nil, nil, err
				}
			}
			p, byName, err := findPort(c, to, list, text)
			if err != nil {
				return nil, nil, err
			}
			if guid, err = readGUID(p.GUID); err != nil {
				return nil, nil, err
			}
			if byName {
				where := "not cabled to a switch"
				if p.Switch != "" {
					where = fmt.Sprintf("at port %d of switch %s", p.SwitchPort, p.Switch)
				}
				named = append(named, fmt.Sprintf("%s is what port %s of node %s, %s, says of itself", terminal.Plain(text), p.GUID, p.NodeGUID, where))
			}
		}
		guids = append(guids, guid)
	}
	return guids, named, nil
}

// findPort finds in a list the end port at a place, or of the node with a name.
func findPort(c *cobra.Command, to *client.Client, list []views.Port, text string) (found views.Port, byName bool, err error) {
	fits := func(p *views.Port) bool {
		host, _, _ := strings.Cut(p.Node, " ") // as of "blue-5 HCA-1"
		return p.Node == text || host == text
	}
	name, num, isPlace := cutPlace(text)
	if isPlace {
		if fits, err = cabledTo(c, to, name, num); err != nil {
			return found, false, err
		}
	}
	n := 0
	for _, p := range list {
		if fits(&p) && p.Found {
			found = p
			n++
		}
	}
	switch n {
	case 0:
		err = fmt.Errorf("port %q: want a GUID, a place (SWITCH:PORT) with a host, or the name of a node (ibwarden port list)", text)
	case 1:
		return found, !isPlace, nil
	default:
		err = fmt.Errorf("port %q: %d ports are of a node that says this of itself: want a GUID or a place (SWITCH:PORT)", text, n)
	}
	return found, false, terminal.WithMisuse(err)
}

// cutPlace cuts SWITCH:PORT, at the last colon.
func cutPlace(text string) (name string, num int, is bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 1 {
		return "", 0, false
	}
	num, err := strconv.Atoi(text[i+1:])
	return text[:i], num, err == nil && num > 0 && num < 255
}

// cabledTo reports of a port whether it is cabled to port num of the switch with a name or node GUID.
func cabledTo(c *cobra.Command, to *client.Client, name string, num int) (func(*views.Port) bool, error) {
	nodes, err := client.All[views.Node](c.Context(), to, "/nodes", nil)
	if err != nil {
		return nil, err
	}
	guid := ""
	for _, n := range nodes {
		if n.Type != "switch" || n.Description != name && !strings.EqualFold(n.GUID, name) {
			continue
		}
		if guid != "" {
			return nil, terminal.WithMisuse(fmt.Errorf("several switches are called %q: name one by its node GUID", name))
		}
		guid = n.GUID
	}
	if guid == "" {
		return nil, terminal.WithMisuse(fmt.Errorf("no switch is called %q, and none has this node GUID", name))
	}
	return func(p *views.Port) bool { return p.Switch == guid && p.SwitchPort == num }, nil
}
