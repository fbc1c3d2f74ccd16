package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// labNetlist is the lab for ibsim; labPaths lead from Hca1 to its ports, each
// with the port of a switch whose table to read, or none.
const labNetlist = `
Switch 8 "Switch1"
[1] "Hca1"[1]
[2] "Hca2"[1]
[3] "Hca3"[1]
[7] "Switch2"[7]
[8] "Switch2"[8]

Switch 8 "Switch2"
[1] "Hca4"[1]
[2] "Hca5"[1]
[7] "Switch1"[7]
[8] "Switch1"[8]

Hca 2 "Hca1"
[1] "Switch1"[1]

Hca 2 "Hca2"
[1] "Switch1"[2]

Hca 2 "Hca3"
[1] "Switch1"[3]

Hca 2 "Hca4"
[1] "Switch2"[1]

Hca 2 "Hca5"
[1] "Switch2"[2]
`

var labPaths = map[string][]string{
	"Hca1": {"0"}, "Hca2": {"0,1,2"}, "Hca3": {"0,1,3"}, "Hca4": {"0,1,7,1"}, "Hca5": {"0,1,7,2"},
	"Switch1": {"0,1", "0"}, "Switch1.1": {"0,1", "1"}, "Switch1.2": {"0,1", "2"}, "Switch1.3": {"0,1", "3"},
	"Switch2": {"0,1,7", "0"}, "Switch2.1": {"0,1,7", "1"}, "Switch2.2": {"0,1,7", "2"},
}

// needTools finds Debian's programs; without them the test is skipped, but
// never where CI is set.
func needTools(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		_, err := exec.LookPath(name)
		need.Need(t, err)
	}
	found, _ := filepath.Glob("/usr/lib/*/umad2sim/libumad2sim.so")
	if len(found) == 0 {
		need.Need(t, errors.New("libumad2sim is not installed"))
	}
	return found[0]
}

// openSM runs a fresh ibsim and OpenSM on it, and reads all tables.
func openSM(t *testing.T, library, conf string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "IBSIM_SOCKNAME="+filepath.Base(filepath.Dir(dir))+filepath.Base(dir)+strconv.Itoa(os.Getpid()),
			"SIM_HOST=Hca1", "OSM_TMP_DIR="+dir, "OSM_CACHE_DIR="+dir)
		ibsimtest.EndWithThis(cmd)
		if name != "ibsim" {
			cmd.Env = append(cmd.Env, "LD_PRELOAD="+library)
		}
		return cmd
	}
	sim := run("ibsim", "-s", "-n", write("netlist", labNetlist))
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sim.Process.Kill()
		_ = sim.Wait()
	}()
	out, err := run("opensm", ibsimtest.LogLimit, "-o", "-P", write("partitions.conf", conf), "-f", filepath.Join(dir, "log")).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("PARSE ERROR")) {
		t.Fatalf("opensm: %v\n%s\n%s", err, conf, out)
	}
	tables := map[string]string{}
	for name, path := range labPaths {
		out, err := run("smpquery", append([]string{"-D", "pkeys"}, path...)...).Output()
		if err != nil {
			var failed *exec.ExitError
			errors.As(err, &failed)
			t.Fatalf("smpquery pkeys %v: %v\n%s", path, err, failed.Stderr)
		}
		tables[name] = show(parseTable(t, string(out)))
	}
	return tables
}

var tableLine = regexp.MustCompile(`(?m)^ *\d+:((?: 0x[0-9a-f]{4})+)`)

// parseTable reads what smpquery prints of a table.
func parseTable(t *testing.T, out string) (table Table) {
	t.Helper()
	last := 0
	for _, line := range tableLine.FindAllStringSubmatch(out, -1) {
		for word := range strings.FieldsSeq(line[1]) {
			k, err := strconv.ParseUint(word, 0, 16)
			if err != nil {
				t.Fatal(err)
			}
			if table = append(table, ib.PKey(k)); k != 0 {
				last = len(table)
			}
		}
	}
	return table[:last]
}

// drawConf makes a valid partitions.conf that fits the lab.
func drawConf(r *rand.Rand) string {
	ports := []string{"Hca1", "Hca2", "Hca3", "Hca4", "Hca5", "0xdeadbeef", "SELF", "ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "NONE", "S"}
	memberships := []string{"", "=full", "=limited", "=both", "=f", " = l "}
	index0 := 1 + r.IntN(4)
	var b strings.Builder
	names := map[int]string{}
	for i := range 1 + r.IntN(6) {
		key := r.IntN(5)
		name, ok := names[key]
		if !ok {
			name = fmt.Sprintf("P%d = %#x", i, 0x8000*r.IntN(2)+[]int{0x7fff, 0x10, 0x1001, 0x300, 0x7eff}[key])
			if key > 1 && r.IntN(3) == 0 {
				name = fmt.Sprint("Auto", i)
			}
			names[key] = name
		}
		b.WriteString(name)
		if key == index0 {
			b.WriteString(" ,indx0")
		}
		b.WriteString([]string{"", ",defmember=full", ",d=l", ",ipoib,mtu=5 , rate=7", ",sl=1,,"}[r.IntN(5)])
		b.WriteString(" :")
		for range r.IntN(6) {
			b.WriteString([]string{" ", "\n", "\n# comment; :,\n"}[r.IntN(3)] + ports[r.IntN(len(ports))] + memberships[r.IntN(len(memberships))] + ",")
		}
		b.WriteString(" ;\n")
	}
	return b.String()
}

// rewrite reads and writes a partitions.conf.
func rewrite(t *testing.T, conf string) string {
	t.Helper()
	p, err := policyfile.ReadConf([]byte(labNames.Replace(conf)), "partitions.conf", policyfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := policyfile.WriteConf(p, "partitions.conf")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// confsShort is how many files OpenSM reads with -short, from the first on.
const confsShort = 4

// The judge of reader, resolution and tables together: OpenSM itself, on
// fabrics of ibsim that nobody has touched. Tables must be equal to the index.
func TestAgreesWithOpenSM(t *testing.T) {
	library := needTools(t, "ibsim", "opensm", "smpquery")
	confs := []string{
		"Default=0x7fff : ALL ;\n",
		"X=0x33,indx0 : Hca2=full, Hca3; X=0x33 : Hca4;\n",
		"A : Hca2; A=0x40 : Hca3=full; A : Hca4;\n",
		"Foo=0x7fff : Hca2=full;\nFoo : Hca3=full;\nDefault : Hca4=full;\n",
	}
	count := 6
	if n, err := strconv.Atoi(os.Getenv("IBWARDEN_OPENSM_CONFS")); err == nil {
		count = n
	}
	for seed := range uint64(count) {
		confs = append(confs, drawConf(rand.New(rand.NewPCG(seed, 1))))
	}
	for i, conf := range confs {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			if i >= confsShort {
				need.Long(t, "OpenSM with each of many files")
			}
			l := newLab()
			ours := l.tables(l.apply(t, conf, false))
			if i%2 == 1 { // what we write means the same to OpenSM
				conf = rewrite(t, conf)
			}
			if diff := cmp.Diff(openSM(t, library, labNames.Replace(conf)), ours); diff != "" {
				t.Errorf("tables (-OpenSM +ours):\n%s\n%s", diff, conf)
			}
		})
	}
}
