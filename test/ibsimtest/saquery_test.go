package ibsimtest

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// saFabric has 8 hosts; saPolicy two tenants that share one of them. Hosts see
// the manager's port, by the default partition, and their own tenants.
const (
	saFabric = "fattree,radix=4,levels=2"
	saPolicy = `Default=0x7fff,ipoib : ALL=limited, SELF=full;
A=0x10,ipoib : 0x100003=full, 0x100005=full, 0x100007=full;
B=0x20,ipoib : 0x100005=full, 0x100009=full, 0x10000b;
`
	saManager = "H0_0"
)

// saquery asks as the named host, and returns what was printed, without the
// lines that tell of the run and not of the fabric.
func (r *rig) saquery(host string, args ...string) string {
	r.Helper()
	for range umadTries {
		ctx, cancel := context.WithTimeout(context.Background(), commandTime)
		o, err := do(r.sim.UmadCommand(ctx, host, r.tools.SAQuery, args...))
		cancel()
		if err != nil {
			r.Fatal(err)
		}
		if !strings.Contains(o.stdout+o.stderr, "timed out") {
			return notOfTheFabric.ReplaceAllString(o.stdout, "") + saError.FindString(o.stderr)
		}
	}
	r.Fatalf("saquery %v as %s: nobody answers", args, host)
	return ""
}

var (
	// notOfTheFabric are settings that each manager chooses, and MLIDs, which
	// each gives out in its own order.
	notOfTheFabric = regexp.MustCompile(`(?mi)^.*(HoqLife|SubnetTimeout|mlid|MulticastFDBTop|ActCount|LifeTimeValue|LFT top).*\n`)
	saError        = regexp.MustCompile(`SA_ERR_\w+|SA\(\w+\)|0x0[0-9]00`)
)

// openSMWith runs an OpenSM at the manager's host until the caller stops it.
func (r *rig) openSMWith(policy string) (stop func()) {
	r.Helper()
	cmd := r.sim.OpenSM(r.Context(), saManager, r.file("opensm.conf", policy), "-d", "2")
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.waitFor("SUBNET UP")
	return func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	}
}

// TestSaqueryComparedWithOpenSM puts the same queries to OpenSM and, after it has
// gone, to ibwarden, which keeps its LIDs. Where both ought to agree the answers
// are the same; libumad2sim shows the first records of an answer only, so that
// each query is for one.
func TestSaqueryComparedWithOpenSM(t *testing.T) {
	need.Long(t, "every query, of both managers")
	t.Parallel()
	r := newRig(t, topologyOf(t, saFabric), saManager)
	requesters := []string{saManager, "H0_1", "H1_0", "H2_1"}
	var queries [][]string
	for lid := 1; lid <= 14; lid++ {
		queries = append(queries, []string{"NR", fmt.Sprint(lid)}, []string{"GIR", fmt.Sprint(lid)}, []string{"SWIR", fmt.Sprint(lid)})
	}
	queries = append(queries, []string{"SMIR"}, []string{"SR"}, []string{"IIR"}, []string{"MCMR"}, []string{"-g"}, []string{"-s"})
	stop := r.openSMWith(saPolicy)
	ends := map[string]int{} // LIDs by host
	for _, host := range requesters {
		ends[host] = r.lidOf(host)
	}
	perHost := func(host string) [][]string {
		all := slices.Clone(queries)
		for lid := 1; lid <= 14; lid++ {
			if lid != ends[host] { // a path to itself has more than one key to choose from
				all = append(all, []string{"--slid", fmt.Sprint(ends[host]), "--dlid", fmt.Sprint(lid), "PR"})
			}
		}
		for _, other := range requesters {
			all = append(all, []string{"PIR", fmt.Sprint(ends[other])})
		}
		return all
	}
	theirs := map[string]string{}
	for _, host := range requesters {
		for _, q := range perHost(host) {
			theirs[fmt.Sprint(host, q)] = r.saquery(host, q...)
		}
	}
	stop()

	d := r.start("--profile", "basic", "--policy", r.file("ours.conf", saPolicy))
	d.next()
	go func() { // the verdicts that follow
		var more document
		for d.decoder.Decode(&more) == nil {
		}
	}()
	found := 0
	for _, host := range requesters {
		for _, q := range perHost(host) {
			ours := r.saquery(host, q...)
			if want := theirs[fmt.Sprint(host, q)]; sorted(ours) != sorted(want) {
				t.Errorf("saquery %v as %s: ibwarden says\n%s\nOpenSM says\n%s", q, host, ours, want)
			}
			if strings.Contains(ours, "dump") {
				found++
			}
		}
	}
	if found < 60 {
		t.Errorf("only %d queries found anything: the comparison proves little", found)
	}
	r.differences(requesters[1], ends)
	if err := d.end(); err != nil {
		t.Errorf("interrupted, it ended with %v", err)
	}
}

// sorted puts the lines of an answer in order: the order of records is free.
func sorted(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

var smpLID = regexp.MustCompile(`(?m)^Lid:\.+(\d+)`)

func (r *rig) lidOf(host string) (lid int) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	o, err := do(r.sim.UmadCommand(ctx, host, r.tools.SMPQuery, "portinfo", "-D", "0"))
	if err != nil {
		r.Fatal(err)
	}
	if m := smpLID.FindStringSubmatch(o.stdout); m != nil {
		fmt.Sscan(m[1], &lid)
	}
	if lid == 0 {
		r.Fatalf("smpquery says of no LID of %s:\n%s%s", host, o.stdout, o.stderr)
	}
	return lid
}

// differences are where OpenSM shows a tenant more than it may see, or says
// less than it could.
func (r *rig) differences(tenant string, ends map[string]int) {
	r.Helper()
	if got := r.saquery(tenant, "PKTR", fmt.Sprint(ends[tenant])); !strings.Contains(got, "0x0700") && !strings.Contains(got, "DENIED") {
		r.Errorf("a P_Key table without trust: %s, want a refusal", got)
	}
	for lid := 1; lid <= 14; lid++ {
		for _, q := range []string{"LR", "SL2VL", "LFTR"} {
			if got := r.saquery(tenant, q, fmt.Sprint(lid)); strings.Contains(got, "dump") {
				r.Errorf("%s %d as %s, which sees no switch:\n%s", q, lid, tenant, got)
			}
		}
	}
}
