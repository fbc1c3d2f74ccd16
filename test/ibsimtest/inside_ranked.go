//go:build linux

package ibsimtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// InsideOpenSM is an InsideOpenSM whose rank can be changed while it runs.
type InsideOpenSM struct {
	t                       testing.TB
	config, pid, log, lines string
}

// logShown is how much of the end of its log Tell shows, bytes.
const logShown = 4000

// StartOpenSM starts an InsideOpenSM as it is installed, of rank 0, with more lines of
// configuration. Start runs a program at its host until the test ends.
func StartOpenSM(t testing.TB, dir, lines string, start func(words ...string)) *InsideOpenSM {
	t.Helper()
	path, err := Program("opensm")
	if err != nil {
		t.Fatal(err)
	}
	o := &InsideOpenSM{t, filepath.Join(dir, "ranked.conf"), filepath.Join(dir, "ranked.pid"), filepath.Join(dir, "ranked.log"), lines}
	o.write(0)
	start("sh", "-c", fmt.Sprintf("echo $$ > %s; exec %s %s -F %s -e -f %s", o.pid, path, LogLimit, o.config, o.log))
	t.Cleanup(func() {
		if t.Failed() {
			o.Tell()
		}
		_ = o.Signal(syscall.SIGKILL) // under libumad2sim it does not always end when it is asked to
	})
	return o
}

// Tell logs the end of what it wrote.
func (o *InsideOpenSM) Tell() {
	o.t.Helper()
	text, _ := os.ReadFile(o.log) // it may not have started
	o.t.Logf("InsideOpenSM's log:\n%s", text[max(0, len(text)-logShown):])
}

func (o *InsideOpenSM) write(rank int) {
	// A standby asks its master, and tells it of its own rank, every so many ms.
	text := fmt.Sprintf("sm_priority %d\nsminfo_polling_timeout 1000\n%s", rank, o.lines)
	if err := os.WriteFile(o.config, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// Rank gives it another rank, as an operator does.
func (o *InsideOpenSM) Rank(rank int) {
	o.t.Helper()
	o.write(rank)
	if err := o.Signal(syscall.SIGHUP); err != nil {
		o.t.Fatal(err)
	}
}

// Signal sends it a signal.
func (o *InsideOpenSM) Signal(number syscall.Signal) error {
	text, err := os.ReadFile(o.pid)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, number)
}
