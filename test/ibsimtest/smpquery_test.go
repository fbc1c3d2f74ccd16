package ibsimtest

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// portState is what smpquery says of a port.
type portState struct {
	lid, masterLID, lmc int
	logical, physical   string
}

var (
	portLine = regexp.MustCompile(`(?m)^(\w+):\.+(.*)$`)
	keyLine  = regexp.MustCompile(`(?m)^ *(\d+):((?: 0x[0-9a-f]{4})+)`)
)

// portInfo reads PortInfo by directed route.
func (r *rig) portInfo(at place) (s portState, err error) {
	text, err := r.umad(r.tools.SMPQuery, "-D", "portinfo", at.path, strconv.Itoa(at.port))
	if err != nil {
		return s, err
	}
	fields := map[string]string{}
	for _, f := range portLine.FindAllStringSubmatch(text, -1) {
		fields[f[1]] = f[2]
	}
	for name, to := range map[string]*int{"Lid": &s.lid, "SMLid": &s.masterLID, "LMC": &s.lmc} {
		if *to, err = strconv.Atoi(fields[name]); err != nil {
			return s, fmt.Errorf("smpquery portinfo %v: field %s: %w\n%s", at, name, err, text)
		}
	}
	s.logical, s.physical = fields["LinkState"], fields["PhysLinkState"]
	return s, nil
}

// pkeys reads a P_Key table, its empty entries at the end left out: by LID
// when lid is not 0, which works only where a route leads, or else by directed
// route.
func (r *rig) pkeys(at place, lid int) ([]uint16, error) {
	kind, address := "-D", at.path
	if lid != 0 {
		kind, address = "-L", strconv.Itoa(lid)
	}
	text, err := r.umad(r.tools.SMPQuery, kind, "pkeys", address, strconv.Itoa(at.port))
	if err != nil {
		return nil, err
	}
	table, used := []uint16{}, 0
	for _, line := range keyLine.FindAllStringSubmatch(text, -1) {
		if line[1] != strconv.Itoa(len(table)) {
			return nil, fmt.Errorf("smpquery pkeys %v: entry %s after %d", at, line[1], len(table))
		}
		for _, word := range strings.Fields(line[2]) {
			key, err := strconv.ParseUint(word, 0, 16)
			if err != nil {
				return nil, fmt.Errorf("smpquery pkeys %v: %w", at, err)
			}
			if table = append(table, uint16(key)); key != 0 {
				used = len(table)
			}
		}
	}
	if len(table) == 0 {
		return nil, fmt.Errorf("smpquery pkeys %v: no table\n%s", at, text)
	}
	return table[:used], nil
}

// reading is all that smpquery reads of a fabric: the end ports' states and
// tables, and the tables of the switch ports that face them.
type reading struct {
	ports map[*endPort]portState
	keys  map[*endPort][]uint16
	guard map[*endPort][]uint16
}

// readersAtOnce is the number of smpquery that run at a time on one ibsim,
// which has ten places for clients.
const readersAtOnce = 2

// read reads the fabric. With byLID the tables of end ports are asked for by
// LID, which proves that routes lead there.
func (r *rig) read(byLID bool) *reading {
	r.Helper()
	out := &reading{map[*endPort]portState{}, map[*endPort][]uint16{}, map[*endPort][]uint16{}}
	var lock sync.Mutex
	var errs []error
	var group sync.WaitGroup
	work := make(chan *endPort)
	for range readersAtOnce {
		group.Go(func() {
			for e := range work {
				state, err := r.portInfo(e.place)
				lid := 0
				if byLID {
					lid = state.lid
				}
				var keys, guard []uint16
				if err == nil {
					keys, err = r.pkeys(e.place, lid)
				}
				if err == nil && e.facing != nil {
					guard, err = r.pkeys(*e.facing, 0)
				}
				lock.Lock()
				errs = append(errs, err)
				out.ports[e], out.keys[e], out.guard[e] = state, keys, guard
				lock.Unlock()
			}
		})
	}
	for _, e := range r.model.ends {
		work <- e
	}
	close(work)
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		r.Fatal(err)
	}
	return out
}

// keysText prints a table for messages.
func keysText(table []uint16) string {
	words := make([]string, len(table))
	for i, k := range table {
		words[i] = fmt.Sprintf("%04x", k)
	}
	return "[" + strings.Join(words, " ") + "]"
}
