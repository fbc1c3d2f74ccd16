package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/ibwarden/ibwarden/test/ibsimtest"
)

// move is one host that goes over from one tenant to another and back, on one
// ibsim, by one manager after the other.
type move struct {
	*bench
	sim   *ibsimtest.Sim
	confs [2][]byte
}

// mover is a way to carry the change out.
type mover struct {
	name string
	runs []moved
}

// moved is what one change took.
type moved struct {
	wall time.Duration
	// smps is how many packets left the manager's port, by ibsim's counter of it.
	smps int
}

// pollEvery is how often a log is looked at.
const pollEvery = time.Millisecond

// compareMoves measures the change by a running OpenSM that gets a SIGHUP, by
// a running ibwarden that gets one, and by `ibwarden apply`, which first reads
// the fabric.
func (b *bench) compareMoves(rounds int) error {
	dir, err := os.MkdirTemp(b.dir, "move-")
	if err != nil {
		return err
	}
	m := &move{bench: b, confs: [2][]byte{policyFor(b.topology, -1), policyFor(b.topology, 1)}}
	if m.sim, err = ibsimtest.StartSim(b.tools, dir, b.topology); err != nil {
		return err
	}
	defer m.sim.Stop()
	fmt.Printf("\none host moves to another tenant (%s)\n\n%-22s %6s %9s %9s\n", b.spec, "", "round", "wall s", "packets")
	var all []*mover
	for _, x := range []struct {
		name string
		do   func(each func(again func() error) error) error
	}{
		{"OpenSM, SIGHUP", m.byOpenSM},
		{"ibwarden, SIGHUP", m.byRun},
		{"ibwarden apply", func(each func(func() error) error) error { return m.byApply(each) }},
		{"apply --keep-routes", func(each func(func() error) error) error { return m.byApply(each, "--keep-routes") }},
	} {
		c := &mover{name: x.name}
		all = append(all, c)
		err := x.do(func(again func() error) error {
			for round := range 2 * rounds { // there and back
				if err := m.policy(1 - round%2); err != nil {
					return err
				}
				if err := m.calm(); err != nil {
					return err
				}
				r, err := m.measure(again)
				if err != nil {
					return err
				}
				c.runs = append(c.runs, r)
				r.print(c.name, fmt.Sprint(round+1))
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	fmt.Println()
	for _, c := range all {
		c.median().print(c.name, "median")
	}
	fmt.Println()
	theirs := all[0].median()
	for _, c := range all[1:] {
		ours := c.median()
		fmt.Printf("%-33s %5.3f %9.5f\n", c.name+" / OpenSM", float64(ours.wall)/float64(theirs.wall), float64(ours.smps)/float64(theirs.smps))
	}
	return nil
}

func (m moved) print(name, round string) {
	fmt.Printf("%-22s %6s %9.3f %9d\n", name, round, m.wall.Seconds(), m.smps)
}

func (c *mover) median() moved {
	return moved{
		wall: middle(c.runs, func(m moved) time.Duration { return m.wall }),
		smps: middle(c.runs, func(m moved) int { return m.smps }),
	}
}

// file is the policy that all managers are given.
func (m *move) file() string { return filepath.Join(m.sim.Dir, "partitions.conf") }

// policy writes the policy before the move, 0, or after it, 1.
func (m *move) policy(which int) error { return os.WriteFile(m.file(), m.confs[which], 0o600) }

// measure lets a change be carried out.
func (m *move) measure(change func() error) (r moved, err error) {
	before, err := m.sent()
	if err != nil {
		return r, err
	}
	began := time.Now()
	if err := change(); err != nil {
		return r, err
	}
	r.wall = time.Since(began)
	after, err := m.sent()
	r.smps = after - before
	return r, err
}

// calmTime is how long nothing is sent before a change is measured, so that what
// switches tell of the one before is no part of it; calmMax is how long that is
// waited for.
const (
	calmTime = time.Second
	calmMax  = time.Minute
)

// calm waits until the manager has nothing to send.
func (m *move) calm() error {
	last, err := m.sent()
	if err != nil {
		return err
	}
	for since, end := time.Now(), time.Now().Add(calmMax); time.Since(since) < calmTime; time.Sleep(calmTime / 10) {
		now, err := m.sent()
		switch {
		case err != nil:
			return err
		case now != last:
			last, since = now, time.Now()
		case time.Now().After(end):
			return fmt.Errorf("the manager is never quiet for %v", calmTime)
		}
	}
	return nil
}

var xmitPackets = regexp.MustCompile(`PortXmitPkts:\.+(\d+)`)

// sent is how many packets have left the manager's port. Asking for it, at that
// port, sends none.
func (m *move) sent() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	out, err := m.sim.UmadCommand(ctx, "", filepath.Join(filepath.Dir(m.tools.SMPQuery), "perfquery")).Output()
	if err != nil {
		return 0, fmt.Errorf("perfquery: %w\n%s", err, tail(string(out)))
	}
	found := xmitPackets.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("perfquery does not say PortXmitPkts:\n%s", tail(string(out)))
	}
	return strconv.Atoi(string(found[1]))
}

// byOpenSM is by a running OpenSM, which begins with the old policy.
func (m *move) byOpenSM(each func(func() error) error) error {
	if err := m.policy(0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	const flushLog = "2"
	cmd := m.sim.OpenSM(ctx, "", m.file(), "-s", "0", "-d", flushLog)
	if err := cmd.Start(); err != nil {
		return err
	}
	defer end(cmd)
	ups := func() int {
		log, _ := os.ReadFile(m.sim.OpenSMLog()) // it comes to be when OpenSM starts
		return bytes.Count(log, []byte("SUBNET UP"))
	}
	wait := func(n int) error {
		for ups() < n {
			if time.Sleep(pollEvery); ctx.Err() != nil {
				return fmt.Errorf("no SUBNET UP within %v", runTime)
			}
		}
		return nil
	}
	if err := wait(1); err != nil {
		return err
	}
	return each(func() error {
		n := ups()
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			return err
		}
		return wait(n + 1)
	})
}

// verdict is what is looked at of what `ibwarden run` prints.
type verdict struct{ Proof struct{ Verdict string } }

// forever is a period so long that not even one of a large fabric's tables is read
// within it while something is measured.
const forever = "10000h"

// byRun is by a running ibwarden, which takes the fabric over with the old
// policy. It reads nothing back on its own meanwhile, so that the packets counted are
// those of the change: OpenSM has nothing like the watch of --guard-period.
func (m *move) byRun(each func(func() error) error) error {
	if err := m.policy(0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	cmd := m.sim.Command(ctx, "", m.ibwarden, "run", "--json", "--fabric", "ibsim:"+m.sim.Name, "--policy", m.file(),
		"--sweep-interval", forever, "--drift-period", forever, "--guard-period", forever, "--socket", "none", "--state", "state.json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	said := make(chan error) // a good verdict, or what is wrong
	defer func() {
		cancel() // what it still says is not read, and would keep it from ending
		end(cmd)
	}()
	go func() {
		defer close(said)
		for all := json.NewDecoder(out); ; {
			var v verdict
			err := all.Decode(&v)
			switch {
			case err != nil:
				err = fmt.Errorf("ibwarden run: %w", err)
			case v.Proof.Verdict != "isolated-by-end-ports": // ibsim keeps no enforcement
				err = fmt.Errorf("verdict %q", v.Proof.Verdict)
			}
			select {
			case said <- err:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	next := func() error {
		if err := <-said; err != nil {
			return fmt.Errorf("%w\n%s", err, tail(stderr.String()))
		}
		return nil
	}
	if err := next(); err != nil {
		return err
	}
	return each(func() error {
		select {
		case <-said: // of a sweep before the calm
		default:
		}
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			return err
		}
		return next()
	})
}

// byApply is by `ibwarden apply` with these flags, one process for each change. What ibsim does
// not keep is known from the run before.
func (m *move) byApply(each func(func() error) error, flags ...string) error {
	return each(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), runTime)
		defer cancel()
		out, err := m.sim.Command(ctx, "", m.ibwarden, append([]string{"apply", "--yes", "--json", "--fabric", "ibsim:" + m.sim.Name,
			"--policy", m.file(), "--state", "state.json", "--journal", "journal"}, flags...)...).Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = fmt.Errorf("%w\n%s", err, tail(string(exit.Stderr)))
			}
			return err
		}
		var done struct{ Outcome string }
		if err := json.Unmarshal(out, &done); err != nil {
			return err
		}
		if done.Outcome != "done" {
			return fmt.Errorf("outcome %q", done.Outcome)
		}
		return nil
	})
}

// end lets a program end.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait() // what it had to say was read
}
