package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/app/cli"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// programTime bounds every program that a test runs.
const programTime = 30 * time.Second

var served atomic.Int32

// simulated serves a fabric until the test ends, and returns the name of its socket.
func simulated(t *testing.T, fabric ...string) string {
	t.Helper()
	path, err := need.Ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("migrate%d-%d", os.Getpid(), served.Add(1))
	c := exec.Command(path, append([]string{"sim", "--socket", name}, fabric...)...)
	ibsimtest.EndWithThis(c)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("ibwarden sim said %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	return name
}

// openSM has Debian's opensm bring a fabric up, and end. The files of its directory are conf and
// partitions; its cache is there too.
func openSM(t *testing.T, socket, conf, partitions string) (dir string) {
	t.Helper()
	tools, err := ibsimtest.FindTools()
	need.Need(t, err)
	dir = directory(t, map[string]string{"opensm.conf": conf, "partitions.conf": partitions})
	ctx, stop := context.WithTimeout(t.Context(), programTime)
	defer stop()
	c := exec.CommandContext(ctx, need.Program(t, "opensm"), "-o", "-F", filepath.Join(dir, "opensm.conf"), "-P", filepath.Join(dir, "partitions.conf"),
		"-f", filepath.Join(dir, "log"), ibsimtest.LogLimit)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "IBSIM_SOCKNAME=" + socket, "LD_PRELOAD=" + tools.Umad2sim, "OSM_TMP_DIR=" + dir, "OSM_CACHE_DIR=" + dir}
	ibsimtest.EndWithThis(c)
	out, err := c.CombinedOutput()
	log, _ := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil || !bytes.Contains(log, []byte("SUBNET UP")) {
		t.Fatalf("opensm: %v\n%s\n%s", err, out, log)
	}
	return dir
}

// counting is a link that counts the Sets which leave.
type counting struct {
	link.Link
	sets, gets int
}

func (l *counting) Drive(ctx context.Context, e link.Engine, done func() bool) error {
	return l.Link.Drive(ctx, &countingEngine{e, l}, done)
}

type countingEngine struct {
	link.Engine
	link *counting
}

func (e *countingEngine) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	to, some := e.Engine.Next(now, p)
	switch {
	case some && p.Method == mad.MethodGet:
		e.link.gets++
	case some:
		e.link.sets++
	}
	return to, some
}

// planned runs the command on a fabric, and counts what was sent.
func planned(t *testing.T, fabric string, line ...string) (out string, l *counting, err error) {
	t.Helper()
	root := &cobra.Command{Use: "ibwarden", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(cli.MigrateCommand(func(flags *pflag.FlagSet) func(*cobra.Command) (link.Link, sweep.Options, error) {
		flags.String("fabric", "sim", "")
		return func(*cobra.Command) (link.Link, sweep.Options, error) {
			to, err := daemon.Open(fabric, 0)
			l = &counting{Link: to}
			return l, sweep.Options{}, err
		}
	}, cobra.NoArgs, ""))
	var b bytes.Buffer
	root.SetOut(&b)
	root.SetErr(io.Discard)
	root.SetArgs(append(append([]string{"migrate", "opensm"}, line...), "--fabric", fabric))
	ctx, stop := context.WithTimeout(t.Context(), programTime)
	defer stop()
	err = root.ExecuteContext(ctx)
	return b.String(), l, err
}

// sent finds how many Sets `ibwarden run` says that it sent.
var sent = regexp.MustCompile(`sent so far: \d+ SubnGet, (\d+) SubnSet`)

// TestTakeoverIsAsPredicted: on a fabric that OpenSM has brought up, --fabric sends no Set, finds
// that LIDs and P_Keys stay, and counts the writes that ibwarden then sends.
func TestTakeoverIsAsPredicted(t *testing.T) {
	name := simulated(t, "fattree,radix=4,levels=2")
	dir := openSM(t, name, "sm_priority 3\nrouting_engine updn\n", "Default=0x7fff, ipoib : ALL=limited, SELF=full ;\nred=0x10 : 0x100003=full, 0x100005=full ;\nblue=0x20 : 0x100007=full, 0x100009 ;\n")
	to, fabric := filepath.Join(t.TempDir(), "to"), "ibsim:"+name
	out, l, err := planned(t, fabric, dir, "--output", to, "--json")
	if err != nil {
		t.Fatal(err)
	}
	if l.sets != 0 || l.gets < 100 {
		t.Errorf("%d Sets and %d Gets were sent", l.sets, l.gets)
	}
	var d cli.Document
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	p := d.Takeover
	ends := p.Switches + p.CAs
	if p.LIDs.Stay != ends || len(p.LIDs.Changes)+p.LIDs.New > 0 || p.Faults > 0 || ends == 0 {
		t.Errorf("LIDs %+v of %d end ports", p.LIDs, ends)
	}
	if p.PKeys.Stay == 0 || p.PKeys.Added+p.PKeys.Removed+p.PKeys.Moved+p.PKeys.Membership+len(p.Notice.Keys)+p.LinksUp+p.Checks.End > 0 {
		t.Errorf("P_Keys %+v, checks %+v, links %d", p.PKeys, p.Checks, p.LinksUp)
	}
	if all := p.Paths.Stay + p.Paths.Changes; all != p.CAs*(p.CAs-1) || p.Paths.New > 0 || p.Routes.Stay == 0 || p.Notice.Reregister != p.CAs {
		t.Errorf("paths %+v, routes %+v, notice %+v", p.Paths, p.Routes, p.Notice)
	}
	// With --once nobody is asked to register again: nobody would answer.
	said, complaints, status := run(t, "run", "--once", "--fabric", fabric, "--policy", filepath.Join(to, "policy.yaml"), "--routing", "updn",
		"--data", filepath.Join(t.TempDir(), "data"), "--quarantine", "0s")
	found := sent.FindStringSubmatch(said)
	if status != 0 || found == nil {
		t.Fatalf("run: status %d: %s%s", status, said, complaints)
	}
	registering := 0
	for _, w := range p.Writes {
		if w.What == "ClientReregister" {
			registering++
		}
	}
	if n, _ := strconv.Atoi(found[1]); n != len(p.Writes)-registering+p.OwnKeys {
		t.Errorf("%d Sets were sent, want %d writes but for %d that ask to register again, and %d M_Keys", n, len(p.Writes), registering, p.OwnKeys)
	}
}

// TestTakeoverOfOpenFabric: of a fabric whose hosts all hold 0xffff the keys that are taken away are
// counted, with the ports that notice; the LID of a port that is off is kept, and that of one
// that is up is its own.
func TestTakeoverOfOpenFabric(t *testing.T) {
	name := simulated(t, "fattree,radix=4,levels=2")
	openSM(t, name, "", "A=0x10 : 0xZZZ=full ;\n") // OpenSM opens the fabric
	dir := directory(t, map[string]string{
		"partitions.conf": "red=0x10 : 0x100003=full ;\n", "opensm.conf": "root_guid_file roots\n", "roots": "0x200000\n0x999\n",
		"guid2lid": "0x0000000000100003 0x0400 0x0400\n\n0x00000000000abcde 0x0401 0x0401\n0x00000000000abcdf 0x0003 0x0003\n",
	})
	data := filepath.Join(t.TempDir(), "data")
	out, l, err := planned(t, "ibsim:"+name, dir, "--json", "--write-data", data)
	if err != nil || l.sets != 0 {
		t.Fatalf("%v, %d Sets", err, l.sets)
	}
	// Whoever is there keeps its LID: that of guid2lid is for ports that are off, and only
	// where nobody has it now.
	state, err := files.LoadState(daemon.DataDir(data).State())
	if want := map[ib.PortGUID]ib.LID{0xabcde: 0x401}; err != nil || !maps.Equal(state.LIDs, want) {
		t.Errorf("LIDs that are kept %v, %v, want %v", state.LIDs, err, want)
	}
	var d cli.Document
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	p := d.Takeover
	if others := p.CAs + p.Switches - 1; p.PKeys.Membership != others || p.PKeys.Added != 1 || len(p.Notice.Keys) != others {
		t.Errorf("P_Keys %+v, noticed at %d of %d", p.PKeys, len(p.Notice.Keys), others)
	}
	if len(p.LIDs.Changes) > 0 || len(p.MissingRoots) != 1 || p.MissingRoots[0] != "0x0000000000000999" {
		t.Errorf("LIDs %+v, roots that are missing %v", p.LIDs, p.MissingRoots)
	}
	text, _, err := planned(t, "ibsim:"+name, dir, "--writes")
	if n := strings.Count(text, "  write: "); err != nil || n != len(p.Writes) || !strings.Contains(text, "0x0000000000000999") {
		t.Errorf("%v, %d writes listed of %d", err, n, len(p.Writes))
	}
}

// TestPlanIsOfAFabric: what is not there is not planned.
func TestPlanIsOfAFabric(t *testing.T) {
	dir := directory(t, map[string]string{"partitions.conf": "red=0x10 : 0x100003=full ;\n"})
	if _, complaints, status := run(t, "migrate", "opensm", dir, "--writes"); status != 2 || !strings.Contains(complaints, "--fabric") {
		t.Errorf("status %d, %s", status, complaints)
	}
	bad := directory(t, map[string]string{"partitions.conf": "red=0x10 : 0xdead=full ;\n"})
	_, l, err := planned(t, "sim", bad)
	var failed *terminal.ExitError
	if !errors.As(err, &failed) || failed.Status != terminal.Misuse || l.sets != 0 {
		t.Errorf("%v: want that no GUID is of this fabric", err)
	}
	many := directory(t, map[string]string{"partitions.conf": "Default=0x7fff:ALL;\n", "opensm.conf": "routing_engine file\nlfts_file /nowhere/lfts\n"})
	if _, complaints, status := run(t, "migrate", "opensm", many, "--fabric", "sim"); status != 2 || !strings.Contains(complaints, "/nowhere/lfts") {
		t.Errorf("status %d, %s", status, complaints)
	}
}
