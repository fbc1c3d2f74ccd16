package ibsimtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// netlist is the cables of a fabric that work, as ibsim takes them.
func netlist(f *observed.Fabric) (*topology.Netlist, error) {
	out := &topology.Netlist{}
	made := make([]*topology.Node, len(f.Nodes))
	for _, kind := range []ib.NodeType{ib.NodeCA, ib.NodeSwitch} {
		for i, n := range f.Nodes {
			if (n.Switch != nil) == (kind == ib.NodeSwitch) {
				made[i] = topology.NewNode(kind, n.Description, n.GUID(), ib.PortNum(len(n.Ports)-1))
				out.Nodes = append(out.Nodes, made[i])
			}
		}
	}
	for i, n := range f.Nodes {
		for p := range n.Ports {
			port := &n.Ports[p]
			if p == 0 || !port.IsTrained() {
				continue
			}
			j := port.Peer.Node.Index
			if j < i || j == i && int(port.Peer.Num) <= p {
				continue
			}
			if err := topology.Connect(made[i], port.Num, made[j], port.Peer.Num); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// Theirs is what an engine of OpenSM made of a fabric.
type Theirs struct {
	// Linear are the tables by Node.Index, with the LIDs that the fabric has.
	Linear [][]ib.PortNum
	// Lanes is the number of virtual lanes that it says it needs, 0 where it says nothing.
	Lanes int
	// Took is the time from where its log says that LIDs are assigned to where it says that
	// the routing is done; but for ftree, OpenSM has queued the tables for the switches by then.
	Took time.Duration
}

var (
	lanesNeeded = regexp.MustCompile(`Lanes needed: (\d+)`)
	routed      = regexp.MustCompile(`osm_ucast_mgr_process: (\S+) tables configured on all switches`)
	refused     = regexp.MustCompile(`No routing engine able to successfully configure|Failed to (?:setup|configure)`)
	addressed   = regexp.MustCompile(`LID ASSIGNMENT COMPLETE`)
	computed    = regexp.MustCompile(`do_routing: FatTree routing is done`)
	ofSwitch    = regexp.MustCompile(`^Unicast lids .* of switch Lid \d+ guid \S+ \('(.*)'\):$`)
	ofLID       = regexp.MustCompile(`^0x([0-9a-f]+) (\d+) # .*: '(.*)'$`)
)

// OpenSM routes a fabric by an engine of OpenSM, on an ibsim in the directory dir.
func OpenSM(ctx context.Context, t *Tools, dir string, b *routingtest.Builder, engine string, options ...string) (*Theirs, error) {
	l, err := netlist(b.Fabric)
	if err != nil {
		return nil, err
	}
	sim, err := StartSim(t, dir, l)
	if err != nil {
		return nil, err
	}
	defer sim.Stop()
	// 0x47: errors, notes, details and the routing tables.
	options = append(options, "-R", engine, "-o", "-Q", "-D", "0x47", "--dump_files_dir", dir)
	cmd := sim.OpenSM(ctx, l.Nodes[0].Description, os.DevNull, options...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("opensm: %w\n%s", err, out)
	}
	log, err := os.ReadFile(sim.OpenSMLog())
	if err != nil {
		return nil, err
	}
	r := &Theirs{}
	if err := r.readLog(log, engine); err != nil {
		return nil, err
	}
	dump, err := os.ReadFile(filepath.Join(dir, "opensm-lfts.dump"))
	if err != nil {
		return nil, err
	}
	return r, r.readTables(b, dump)
}

func (r *Theirs) readLog(log []byte, engine string) error {
	var begin, end, last time.Time
	lines := bufio.NewScanner(bytes.NewReader(log))
	for lines.Scan() {
		line := lines.Text()
		at, ok := stamp(line)
		if !ok { // a line that goes on
			if end.IsZero() && addressed.MatchString(line) {
				begin = last
			}
			continue
		}
		last = at
		switch found := lanesNeeded.FindStringSubmatch(line); {
		case found != nil:
			r.Lanes, _ = strconv.Atoi(found[1]) // digits
		case computed.MatchString(line) && end.IsZero():
			end = at
		case routed.MatchString(line):
			if end.IsZero() {
				end = at
			}
			if used := routed.FindStringSubmatch(line)[1]; used != engine {
				return fmt.Errorf("%s cannot route this (it needs %d lanes), and %s did", engine, r.Lanes, used)
			}
		case refused.MatchString(line):
			return errors.New(line)
		}
	}
	if begin.IsZero() || end.IsZero() {
		return errors.New("the log does not tell when the routing began and ended")
	}
	r.Took = end.Sub(begin)
	return lines.Err()
}

// stamp is the time at which a line of the log was written.
func stamp(line string) (time.Time, bool) {
	const second, all = len("Jan 02 15:04:05"), len("Jan 02 15:04:05 000000")
	if len(line) < all {
		return time.Time{}, false
	}
	at, err := time.Parse("Jan 02 15:04:05", line[:second])
	micro, err2 := strconv.Atoi(line[second+1 : all])
	return at.Add(time.Duration(micro) * time.Microsecond), err == nil && err2 == nil
}

// readTables takes the tables from the dump, by the names of nodes, since OpenSM gives LIDs
// of its own.
func (r *Theirs) readTables(b *routingtest.Builder, dump []byte) error {
	lids, switches := map[string]ib.LID{}, map[string]int{}
	for _, d := range b.Destinations {
		lids[d.Port.Node.Description] = d.LID
	}
	r.Linear = make([][]ib.PortNum, len(b.Fabric.Nodes))
	for _, s := range b.Fabric.Switches() {
		switches[s.Description] = s.Index
		r.Linear[s.Index] = make([]ib.PortNum, len(b.Destinations)+1)
	}
	var table []ib.PortNum
	lines := bufio.NewScanner(bytes.NewReader(dump))
	for lines.Scan() {
		line := lines.Text()
		if found := ofSwitch.FindStringSubmatch(line); found != nil {
			i, known := switches[found[1]]
			if !known {
				return fmt.Errorf("switch %q of the dump is not in the fabric", found[1])
			}
			table = r.Linear[i]
		} else if found := ofLID.FindStringSubmatch(line); found != nil {
			lid, known := lids[found[3]]
			exit, err := strconv.ParseUint(found[2], 10, 8)
			if !known || err != nil || table == nil {
				return fmt.Errorf("line of the dump: %q", strings.TrimSpace(line))
			}
			table[lid] = ib.PortNum(exit)
		}
	}
	return lines.Err()
}
