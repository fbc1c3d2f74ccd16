package views

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// FindEndPort is the one of these end ports that a person means: by GUID, by LID, by the
// description of its node, or by that with the number of the port.
func FindEndPort(ports []*observed.Port, name string) (*observed.Port, error) {
	var found []*observed.Port
	guid, guidErr := ib.ParsePortGUID(name)
	lid, lidErr := ib.ParseLID(name)
	all := make([]string, len(ports))
	for i, p := range ports {
		if all[i] = p.Node.Description; guidErr == nil && p.GUID == guid || lidErr == nil && p.InfoRead && p.Info.LID.IsUnicast() && p.Info.LID == lid {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		found = described(ports, name, all)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("%q is no end port that was reached%s; want a port GUID, a LID, a node description, or DESCRIPTION:PORT",
			name, names.DidYouMean(name, all))
	}
	may := make([]string, 0, len(found))
	for _, p := range found {
		may = append(may, fmt.Sprintf("%s (%s)", p, p.GUID))
	}
	slices.SortFunc(may, cmp.Compare)
	return nil, fmt.Errorf("%q is ambiguous: it may be any of %s", name, strings.Join(may, ", "))
}

// described are the ports that a description means, all of it or its first word,
// with or without a colon and the number of a port behind it.
func described(ports []*observed.Port, name string, all []string) (found []*observed.Port) {
	for _, i := range names.One(name, all) {
		found = append(found, ports[i])
	}
	colon := strings.LastIndexByte(name, ':')
	if len(found) > 0 || colon < 0 {
		return found
	}
	for _, i := range names.One(name[:colon], all) {
		if strconv.Itoa(int(ports[i].Num)) == name[colon+1:] {
			found = append(found, ports[i])
		}
	}
	return found
}
