package consoletest

import (
	"fmt"
	"testing"
)

// TestOffer: a tenant offers a port on the page Change, the other takes it into a partition of its own on the
// overview, and a second offer is withdrawn by who made it.
func TestOffer(t *testing.T) {
	s := demonstration(t)
	s.tenant("amber", "0x110", "blue-1")
	s.proved()
	green, amber := s.openAs(t, s.token("green")), s.openAs(t, s.token("amber"))
	offer := func(host string) {
		green.goTo("#/change?task=offer&ports=" + s.guid(host))
		green.find("textbox", "To the tenant").fill("amber")
		green.accessible("offer")
		green.find("button", "Show the plan").click()
		green.find("button", "Apply").click()
		green.until(`document.querySelector('[data-step]')?.dataset.state === 'approval'`)
		green.says("The offer waits")
	}
	offer("red-5")
	if s.membersOf("0x0100") == "" || len(s.items("/approvals")) != 1 {
		t.Fatal("the offer is not as it is to be")
	}
	amber.goTo("#/overview")
	amber.find("button", "Accept the offer of green").click()
	amber.find("combobox", "Into the partition").choose(`amber-all \(0x0110\)`)
	amber.find("combobox", "As").choose("limited members")
	amber.accessible("an offer")
	amber.find("button", "Show the plan").click()
	amber.says("The fabric would be written to.")
	amber.find("button", "Apply").click()
	amber.until(`document.querySelector('[data-flow]')?.dataset.flow === 'done'`)
	if port := s.do("GET", "/ports/"+s.guid("red-5"), nil)["item"].(js); port["owner"] != "amber" || fmt.Sprint(port["partitions"]) != "[0x0110]" {
		t.Errorf("%v", port)
	}
	offer("red-6")
	green.goTo("#/overview")
	green.find("button", "Withdraw the offer of green").click()
	green.find("button", "Apply").click()
	green.until(`document.querySelector('[data-flow]')?.dataset.flow === 'done'`)
	if list := s.items("/approvals"); len(list) != 0 {
		t.Errorf("%v", list)
	}
}
