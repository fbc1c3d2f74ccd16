package ibsimtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Time limits of processes.
const (
	startWait   = 15 * time.Second // until ibsim listens
	simLife     = 15 * time.Minute // of one ibsim
	exitWait    = 2 * time.Second  // for output after a process was killed
	pollEvery   = 2 * time.Millisecond
	sparePorts  = 64 // beyond those of the topology, in ibsim's tables
	spareNodes  = 8
	minLimit    = 256 // of ibsim's tables, in entries
	socketStyle = "ibwarden-%d-%d"
)

// Sim is a running ibsim.
type Sim struct {
	// Name is the base of its socket names (IBSIM_SOCKNAME).
	Name string
	// Dir holds its files, and is where its clients run.
	Dir string

	tools *Tools
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{} // closed when the process has ended
	stop  context.CancelFunc
}

// sims counts the simulators of this process, for their names.
var sims atomic.Uint32

// Record is an option of ibsim: it writes down every packet that it takes in; see
// Requests.
const Record = "-vvv"

// StartSim runs an ibsim with this topology in the directory dir and waits
// until it listens. Stop ends it.
func StartSim(t *Tools, dir string, l *topology.Netlist, options ...string) (*Sim, error) {
	var text bytes.Buffer
	if err := l.WriteIbsim(&text); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "fabric.net")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		return nil, err
	}
	switches, ports := 0, 0
	for _, n := range l.Nodes {
		ports += len(n.Ports)
		if n.IsEndPort(0) {
			switches++
		}
	}
	limit := func(n int) string { return strconv.Itoa(max(n, minLimit)) }
	ctx, cancel := context.WithTimeout(context.Background(), simLife)
	s := &Sim{
		Name: fmt.Sprintf(socketStyle, os.Getpid(), sims.Add(1)), Dir: dir,
		tools: t, ended: make(chan struct{}), stop: cancel,
	}
	options = append(options, "-s", "-n",
		"-N", limit(len(l.Nodes)+spareNodes), "-S", limit(switches+spareNodes), "-P", limit(ports+sparePorts), file)
	s.cmd = exec.CommandContext(ctx, t.Ibsim, options...)
	s.cmd.Env = s.environment("")
	var err error
	if s.log, err = os.Create(filepath.Join(dir, "ibsim.log")); err != nil {
		cancel()
		return nil, err
	}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	tame(s.cmd, dir)
	if err := s.cmd.Start(); err != nil {
		cancel()
		s.log.Close()
		return nil, err
	}
	go func() {
		s.cmd.Wait() // it only ever ends by being killed, or badly: the log tells
		s.log.Close()
		close(s.ended)
	}()
	if err := s.listens(); err != nil {
		s.Stop()
		text, _ := os.ReadFile(s.log.Name()) // what there is of it
		return nil, fmt.Errorf("ibsim: %w\n%s", err, text)
	}
	return s, nil
}

// packetDump is how a packet begins in ibsim's record: the second group of
// digits is the class version and the method.
var packetDump = regexp.MustCompile(`--- packet ---\n01[0-9a-f]{2} [0-9a-f]{2}([0-9a-f]{2}) `)

// Requests counts the packets that clients have sent so far, by method, as ibsim
// itself has written down. It has to run with Record. What a client sent before
// it was told that it is disconnected is in the record by then.
func (s *Sim) Requests() (map[mad.Method]int, error) {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return nil, err
	}
	out := map[mad.Method]int{}
	for _, found := range packetDump.FindAllSubmatch(text, -1) {
		method, err := strconv.ParseUint(string(found[1]), 16, 8)
		if err != nil {
			return nil, err
		}
		out[mad.Method(method)]++
	}
	return out, nil
}

// listens waits for the control socket.
func (s *Sim) listens() error {
	// The name of the socket has a closing zero byte.
	control := &net.UnixAddr{Net: "unixgram", Name: "@" + s.Name + ":ctl\x00"}
	for end := time.Now().Add(startWait); time.Now().Before(end); time.Sleep(pollEvery) {
		if c, err := net.DialUnix("unixgram", nil, control); err == nil {
			return c.Close()
		}
		select {
		case <-s.ended:
			return errors.New("it ended at once")
		default:
		}
	}
	return fmt.Errorf("it does not listen after %v", startWait)
}

// Stop ends the simulator and waits for its end. It may be called again.
func (s *Sim) Stop() {
	s.stop()
	<-s.ended
}

// Alive reports whether the simulator still runs; its clients can crash it.
func (s *Sim) Alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// environment is that of the simulator and of its clients at the named node,
// the simulator's default when host is empty.
func (s *Sim) environment(host string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + s.Dir, "IBSIM_SOCKNAME=" + s.Name}
	if host != "" {
		env = append(env, "SIM_HOST="+host)
	}
	return env
}

// Command prepares ibwarden, or another program that speaks to ibsim itself,
// to run at the named node.
func (s *Sim) Command(ctx context.Context, host, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = s.environment(host)
	tame(cmd, s.Dir)
	return cmd
}

// LogLimit is the option that every OpenSM of a test is given: at 64 MB it begins its
// log again. One whose fabric is gone writes errors as long as it lives.
const LogLimit = "--log_limit=64"

// UmadCommand prepares a program that uses libibumad to run at the named node.
func (s *Sim) UmadCommand(ctx context.Context, host, program string, args ...string) *exec.Cmd {
	cmd := s.Command(ctx, host, program, args...)
	cmd.Env = append(cmd.Env, "LD_PRELOAD="+s.tools.Umad2sim)
	return cmd
}

// OpenSM prepares an OpenSM with this partitions.conf, its log in the file
// opensm.log of the simulator's directory.
func (s *Sim) OpenSM(ctx context.Context, host, conf string, args ...string) *exec.Cmd {
	args = append([]string{LogLimit, "-F", os.DevNull, "-P", conf, "-e", "-f", s.OpenSMLog()}, args...)
	cmd := s.UmadCommand(ctx, host, s.tools.OpenSM, args...)
	cmd.Env = append(cmd.Env, "OSM_TMP_DIR="+s.Dir, "OSM_CACHE_DIR="+s.Dir)
	return cmd
}

// OpenSMLog is where OpenSM writes its log.
func (s *Sim) OpenSMLog() string { return filepath.Join(s.Dir, "opensm.log") }

// tame makes a process run in dir and end with this one.
func tame(cmd *exec.Cmd, dir string) {
	cmd.Dir = dir
	cmd.WaitDelay = exitWait
	EndWithThis(cmd)
}
