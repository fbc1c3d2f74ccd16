package scaletest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// packets says what phases sent, and what would have done, in one line: a benchmark shows ten.
func packets(phases []sweep.Phase) string {
	all := sweep.SumPhases(phases)
	all.Name = "all"
	out := []string{"packets/least by phase"}
	for _, p := range append(phases, all) {
		out = append(out, fmt.Sprintf("%s %d/%d", p.Name, p.Sent, p.Least))
	}
	return strings.Join(out, ", ")
}

// overLeast is how many packets phases sent for each that would have done.
func overLeast(phases []sweep.Phase) float64 {
	all := sweep.SumPhases(phases)
	return float64(all.Sent) / float64(all.Least)
}

// mostOverLeast is how many packets a phase may send for each that it needs.
const mostOverLeast = 1.1

// TestLeastPackets: a bring-up sends little more than it needs, in each phase.
func TestLeastPackets(t *testing.T) {
	for _, o := range []order{
		{Topology: "fattree,radix=8", Tenants: 4},
		{Topology: "fattree,radix=8,levels=3", Tenants: 4, Keys: 3},
		{Topology: "fattree,radix=12", LMC: 2},
		{Topology: "torus,x=4,y=4,hosts=2", Tenants: 4, Routing: routing.DOR},
		{Topology: "fattree,radix=36", Tenants: 10},
	} {
		t.Run(o.Topology, func(t *testing.T) {
			f, err := o.measure()
			if err != nil || f.Verdict != "isolated" {
				t.Fatalf("verdict %s, %v", f.Verdict, err)
			}
			t.Log(packets(f.Packets))
			for _, p := range f.Packets {
				if p.Least == 0 || p.Sent < p.Least || float64(p.Sent) > mostOverLeast*float64(p.Least) {
					t.Errorf("%s sends %d packets, and needs %d", p.Name, p.Sent, p.Least)
				}
			}
		})
	}
}

// TestLeastPacketsAfterWait: a start that waits for what an earlier manager may have sent, and finds that
// there was none, reads the tables once more under M_Keys, and nothing else.
func TestLeastPacketsAfterWait(t *testing.T) {
	f, err := order{Topology: "fattree,radix=8", Tenants: 4, Pause: time.Second}.measure()
	if err != nil || f.Verdict != "isolated" {
		t.Fatalf("verdict %s, %v", f.Verdict, err)
	}
	t.Log(packets(f.Packets))
	var names []string
	var sent, least, tables uint64
	for _, p := range f.Packets[:4] {
		names = append(names, p.Name)
	}
	for _, p := range f.Packets {
		sent, least = sent+p.Sent, least+p.Least
		if p.Name == event.PhaseTables {
			tables = p.Sent
		}
	}
	if got, want := strings.Join(names, ", "), "discover, read tables, M_Keys, read tables"; got != want {
		t.Errorf("the phases are %s, want %s", got, want)
	}
	if float64(sent-tables) > mostOverLeast*float64(least) {
		t.Errorf("%d packets, %d of them for tables a second time, and it needs %d", sent, tables, least)
	}
}
