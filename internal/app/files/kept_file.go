package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// stateFile is what is kept from run to run: the LIDs of ports by GUID, the
// P_Keys that were allocated to partitions by name, the PortInfo elements that
// ports do not keep, by node GUID and port number, and what hosts registered
// with subnet administration.
type stateFile struct {
	Version int                    `json:"version"`
	LIDs    map[string]ib.LID      `json:"lids"`
	PKeys   map[string]ib.PKeyBase `json:"pkeys"`
	Forgets map[string][]string    `json:"forgets"`
	// Fenced are the ports that the policy does not fit.
	Fenced []string `json:"fenced,omitempty"`
	// Fences are the switch ports that are fenced, with the reason of each, by
	// node GUID and port number.
	Fences map[string]string `json:"fences,omitempty"`
	// Aliases reports whether a policy has given alias GUIDs.
	Aliases bool `json:"aliases,omitempty"`
	// Names are names of policies that have found a port, sorted.
	Names []string `json:"names,omitempty"`
	// Managed reports whether a run was master of the subnet.
	Managed bool `json:"managed,omitempty"`
	// Administration is nil where no run has answered hosts yet.
	Administration *administrationFile `json:"administration,omitempty"`
}

const stateVersion = 1

// stateFileMax is the most bytes of a state file that is read.
const stateFileMax = 1 << 30

// readState reads the file; one that does not exist is empty.
func readState(path string) (s stateFile, err error) {
	data, err := Read(path, stateFileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return stateFile{Version: stateVersion}, nil
	}
	if err != nil {
		return s, err
	}
	if err := resource.UnmarshalStored(data, &s); err != nil {
		return s, fmt.Errorf("state %s: %w", path, err)
	}
	if s.Version != stateVersion {
		return s, fmt.Errorf("state %s: version %d, want %d", path, s.Version, stateVersion)
	}
	return s, nil
}

// LoadState reads what an earlier run assigned; a file that does not exist is
// a first run.
func LoadState(path string) (desired.Assigned, error) {
	s, err := readState(path)
	if err != nil {
		return desired.Assigned{}, err
	}
	a, err := s.assigned()
	if err != nil {
		return desired.Assigned{}, fmt.Errorf("state %s: %w", path, err)
	}
	return a, nil
}

// assigned checks and converts what was assigned.
func (s *stateFile) assigned() (desired.Assigned, error) {
	a := desired.Assigned{LIDs: make(map[ib.PortGUID]ib.LID, len(s.LIDs)), PKeys: s.PKeys, Aliases: s.Aliases, Managed: s.Managed}
	for g, lid := range s.LIDs {
		guid, err := ib.ParsePortGUID(g)
		if err != nil || !lid.IsUnicast() {
			return desired.Assigned{}, fmt.Errorf("LID %d of port %q: want a unicast LID and a port GUID", lid, g)
		}
		a.LIDs[guid] = lid
	}
	for name, base := range s.PKeys {
		if !base.IsValid() {
			return desired.Assigned{}, fmt.Errorf("P_Key %s of partition %q: want 0x0001 to 0x7fff", base, name)
		}
	}
	a.Fenced = make(map[ib.PortGUID]bool, len(s.Fenced))
	for _, g := range s.Fenced {
		guid, err := ib.ParsePortGUID(g)
		if err != nil {
			return desired.Assigned{}, fmt.Errorf("fenced port %q: want a port GUID", g)
		}
		a.Fenced[guid] = true
	}
	if len(s.Names) > 0 {
		a.Names = make(map[string]bool, len(s.Names))
	}
	for _, name := range s.Names {
		a.Names[name] = true
	}
	for at, reason := range s.Fences {
		if a.Fences == nil {
			a.Fences = make(map[observed.Place]string, len(s.Fences))
		}
		place, err := observed.ParsePlace(at)
		if err != nil {
			return desired.Assigned{}, fmt.Errorf("fenced switch port %q: want a node GUID, a colon and a port number", at)
		}
		a.Fences[place] = reason
	}
	a.Forgets = make(map[observed.Place]observed.Element, len(s.Forgets))
	for at, names := range s.Forgets {
		place, err := observed.ParsePlace(at)
		elements, ok := observed.ParseElements(names)
		if err != nil || !ok {
			return desired.Assigned{}, fmt.Errorf("port %q forgets %q: want a node GUID, a colon and a port number, and names of PortInfo elements", at, names)
		}
		a.Forgets[place] = elements &^ observed.ElementEnforcement
	}
	return a, nil
}

// stateProbe is how many bytes are written to see whether there is room.
const stateProbe = 4096

// CheckState tells before anything is sent that a state file could not be kept.
func CheckState(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("state %s: it could not be kept: %w", path, err)
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(make([]byte, stateProbe)); err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("state %s: it could not be kept: %w", path, err)
	}
	return nil
}

// SaveState replaces what was assigned in the file; what hosts registered stays. With an
// empty path nothing is kept.
func SaveState(path string, a desired.Assigned) error {
	if path == "" {
		return nil
	}
	old, err := readState(path)
	if err != nil {
		return err
	}
	return writeState(path, a, old.Administration)
}

// SaveStates replaces everything in the file. With an empty path nothing is kept.
func SaveStates(path string, a desired.Assigned, r Registered) error {
	if path == "" {
		return nil
	}
	file, err := r.encode()
	if err != nil {
		return fmt.Errorf("state %s: %w", path, err)
	}
	return writeState(path, a, file)
}

// formOf is what is written of this.
func formOf(a desired.Assigned, r *administrationFile) stateFile {
	s := stateFile{
		Version: stateVersion, LIDs: make(map[string]ib.LID, len(a.LIDs)), PKeys: a.PKeys, Aliases: a.Aliases, Managed: a.Managed,
		Forgets: make(map[string][]string, len(a.Forgets)), Administration: r, Names: slices.Sorted(maps.Keys(a.Names)),
	}
	for g, lid := range a.LIDs {
		s.LIDs[g.String()] = lid
	}
	for at, elements := range a.Forgets {
		s.Forgets[at.String()] = elements.Names()
	}
	for at, reason := range a.Fences {
		if s.Fences == nil {
			s.Fences = make(map[string]string, len(a.Fences))
		}
		s.Fences[at.String()] = reason
	}
	for _, g := range slices.Sorted(maps.Keys(a.Fenced)) {
		s.Fenced = append(s.Fenced, g.String())
	}
	return s
}

// writeState replaces the file as a whole: a crash leaves the old or the new.
func writeState(path string, a desired.Assigned, r *administrationFile) error {
	data, err := json.MarshalIndent(formOf(a, r), "", " ")
	if err != nil {
		return err
	}
	err = Replace(path, Bytes(append(data, '\n')))
	if err != nil {
		return fmt.Errorf("state %s: %w", path, err)
	}
	return nil
}
