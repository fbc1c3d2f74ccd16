package ibsimtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/test/routingtest"
)

const (
	watchEvery = 2 * time.Millisecond
	// tick is the unit of processor times in /proc.
	tick = 10 * time.Millisecond
)

// done is where OpenSM's log says that an engine has computed its routes. dfsssp says it first
// for the lanes, before it spreads the paths over them.
var done = regexp.MustCompile(`FatTree routing is done|tables configured on all switches`)

// Spent is the processor time that an engine of OpenSM takes, from where its log says that
// LIDs are assigned to where it says that the routes are computed.
func Spent(ctx context.Context, t *Tools, dir string, b *routingtest.Builder, engine string) (time.Duration, error) {
	l, err := netlist(b.Fabric)
	if err != nil {
		return 0, err
	}
	sim, err := StartSim(t, dir, l)
	if err != nil {
		return 0, err
	}
	defer sim.Stop()
	conf := filepath.Join(dir, "opensm.conf")
	if err := os.WriteFile(conf, []byte("force_log_flush TRUE\n"), 0o600); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// 0x7: errors, notes and details, without the routes.
	cmd := sim.OpenSM(ctx, l.Nodes[0].Description, os.DevNull, "-R", engine, "-o", "-Q", "-D", "0x7", "-F", conf,
		"--maxsmps", "64", "--dump_files_dir", dir)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer cmd.Wait() // it is killed when it has routed
	defer cancel()
	begin := time.Duration(-1)
	for at := int64(0); ; time.Sleep(watchEvery) {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("OpenSM has not routed: %w", err)
		}
		spent, err := processorTime(cmd.Process.Pid)
		if err != nil {
			return 0, fmt.Errorf("OpenSM has ended: %w", err)
		}
		text, next := after(sim.OpenSMLog(), at)
		at = next
		if begin < 0 && addressed.MatchString(text) {
			begin = spent
		}
		switch {
		case refused.MatchString(text):
			return 0, fmt.Errorf("%s cannot route this", engine)
		case begin >= 0 && done.MatchString(text):
			return spent - begin, nil
		}
	}
}

// after is the text of a file from an offset on, to the end of the last whole line, and where
// that is.
func after(file string, at int64) (string, int64) {
	text, err := os.ReadFile(file)
	if err != nil || int64(len(text)) < at {
		return "", at // not there yet
	}
	end := int64(strings.LastIndexByte(string(text), '\n') + 1)
	return string(text[at:max(at, end)]), max(at, end)
}

// processorTime is what a process has used so far.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	const user, system = 11, 12 // behind the name
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	sum := time.Duration(0)
	for _, field := range []string{fields[user], fields[system]} {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
