package consoletest

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// task is what somebody has to do, once in the console and once at the command line.
type task struct {
	name  string
	where func(testing.TB) *site // made once for the console and once for the command line
	// console does it on a page that shows the fabric, and sees that it is done.
	console func(*site, *page)
	// shell does it with commands and sees that it is done.
	shell func(*site, *shell)
}

// me is how the history names whoever runs the tests, who is the provider of services that he starts.
func me() string { return fmt.Sprint("uid ", os.Geteuid()) }

// shell counts the commands.
type shell struct {
	*site
	commands int
}

func (s *shell) run(words ...string) string {
	s.Helper()
	s.commands++
	return s.command(words...)
}

// may is run of what may end with another status than 0.
func (s *shell) may(words ...string) string {
	s.Helper()
	s.commands++
	out, _ := s.try(words...)
	return out
}

// guids are the GUIDs of hosts, as ibwarden port list has them.
func (s *shell) guids(hosts ...string) (list []string) {
	s.Helper()
	out := s.run("port", "list")
	for _, h := range hosts {
		line := regexp.MustCompile(`(?m)^.*\b` + regexp.QuoteMeta(h) + ` HCA-1\b.*$`).FindString(out)
		guid := regexp.MustCompile(`0x[0-9a-f]{16}`).FindString(line)
		if guid == "" {
			s.Fatalf("port list does not have %s:\n%s", h, out)
		}
		list = append(list, guid)
	}
	return list
}

// says fails the test if a command has not printed what it was to print.
func (s *shell) says(out, pattern string) {
	s.Helper()
	if !regexp.MustCompile(pattern).MatchString(out) {
		s.Fatalf("printed:\n%s\nwant %s", out, pattern)
	}
}

// follow clicks on a link to a page of the console and waits until that is shown.
func (p *page) follow(name string) {
	p.Helper()
	link := p.find("link", name)
	var to string
	if err := link.call(`function() { for (const e of document.querySelectorAll('main .page')) delete e.dataset.ready; return this.getAttribute('href'); }`, &to); err != nil {
		p.Fatalf("%s: %v", link.what, err)
	}
	link.click()
	p.until(fmt.Sprintf(`location.hash === %q`, to))
	p.ready()
}

// apply shows the plan, applies it, and goes on until all of it is proved.
func (p *page) apply() {
	p.Helper()
	p.find("button", "Show the plan").click()
	p.find("button", "Apply.*").click()
	for {
		p.until(`['done', 'stopped', 'failed', 'stale'].includes(document.querySelector('[data-flow]')?.dataset.flow)`)
		state := p.text(`document.querySelector('[data-flow]').dataset.flow`)
		if state != "stopped" {
			if states := p.text(`[...document.querySelectorAll('[data-step]')].map(e => e.dataset.state).join(' ')`); state != "done" || strings.Trim(strings.ReplaceAll(states, "proved", ""), " ") != "" {
				p.Fatalf("the change is %s, its steps are %s:\n%s", state, states, p.said())
			}
			return
		}
		p.find("button", "Continue").click()
		p.until(`document.querySelector('[data-flow]').dataset.flow !== 'stopped'`)
	}
}

var five = []string{"red-1", "red-2", "red-3", "blue-1", "blue-2"}

// twoPartitions is the demonstration with a second partition of its tenant.
func twoPartitions(t testing.TB) *site {
	t.Helper()
	s := demonstration(t)
	s.do("PUT", "/partitions/0x0101", js{"name": "green-two", "owner": "green"}, "If-None-Match", "*", "Why", "a second cluster")
	s.proved()
	return s
}

// membersOf are the GUIDs of the members of a partition.
func (s *site) membersOf(pkey string) string {
	s.Helper()
	var list []string
	for _, m := range s.items("/partitions/" + pkey + "/members") {
		list = append(list, fmt.Sprint(m["port"]))
	}
	return strings.Join(list, " ")
}

var tasks = []task{
	{"give a tenant five hosts", demonstration, func(s *site, p *page) {
		p.follow("Change")
		p.follow("Give ports to a tenant")
		p.find("textbox", "Or paste a list.*").fill(strings.Join(five, "\n"))
		p.find("button", "Take the list").click()
		p.find("combobox", "Tenant").choose("green")
		p.find("combobox", "And make them members of").choose(`green-all \(0x0100\)`)
		p.apply()
		s.has(five...)
	}, func(s *site, sh *shell) {
		guids := sh.guids(five...)
		sh.run(append([]string{"port", "assign", "--tenant", "green", "--yes", "--wait"}, guids...)...)
		for i := range guids {
			guids[i] += "=full"
		}
		sh.run(append([]string{"partition", "member", "add", "green-all", "--wait"}, guids...)...)
		s.has(five...)
	}},
	{"move a host", twoPartitions, func(s *site, p *page) {
		p.follow("Change")
		p.follow("Move ports")
		p.find("searchbox", "Search").fill("red-5")
		p.find("checkbox", "Choose red-5 .*").click()
		p.find("combobox", "To the partition").choose("green-two .*")
		p.apply()
		s.moved("red-5")
	}, func(s *site, sh *shell) {
		guid := sh.guids("red-5")[0]
		sh.run("partition", "member", "add", "green-two", guid+"=full", "--wait")
		sh.run("partition", "member", "remove", "green-all", guid, "--wait")
		s.moved("red-5")
	}},
	{"find why two hosts cannot talk", demonstration, func(_ *site, p *page) {
		p.follow("Why")
		p.find("combobox", "From").fill("red-1")
		p.find("combobox", "To").fill("blue-4")
		p.find("button", "Ask").click()
		p.says("They share no partition: red-1 HCA-1 is in red")
	}, func(_ *site, sh *shell) {
		sh.says(sh.may("why", "red-1", "blue-4"), "they share no partition: red-1 HCA-1 is in red")
	}},
	{"find a mis-cabled port", faulty, func(s *site, p *page) {
		// The page that the console begins with lists them.
		p.says("(?s)What is wrong now.*leaf-1 port 4")
	}, func(s *site, sh *shell) {
		sh.says(sh.may("topology", "diff", "--fabric", s.fabric, "--data", s.dir), "leaf-1:4")
	}},
	{"see who changed what last week", demonstration, func(_ *site, p *page) {
		p.follow("History")
		p.find("combobox", "Since").choose("the last week")
		p.says(`(?s)4 changes: ` + me() + ` 3.*` + reason)
	}, func(_ *site, sh *shell) {
		sh.says(sh.run("history", "list", "--limit", "1000"), `(?s)`+me()+`.*partition`)
	}},
	{"roll back", twoPartitions, func(s *site, p *page) {
		p.follow("History")
		p.follow("Roll back …")
		p.find("spinbutton", "Back to revision").fill("4")
		p.find("textbox", "Reason").fill("a mistake")
		p.find("button", "Try it").click()
		p.find("button", "Roll back to revision 4").click()
		p.find("button", "Roll back").click()
		p.says(`revision \d+:\s+✓\s+proved`)
		s.rolledBack()
	}, func(s *site, sh *shell) {
		sh.run("history", "list")
		sh.run("rollback", "4", "--dry-run")
		sh.run("rollback", "4", "--why", "a mistake", "--wait")
		s.rolledBack()
	}},
	{"take a spine out of service", demonstration, func(_ *site, p *page) {
		p.follow("Managers")
		p.find("combobox", "Switch").fill("spine-2")
		p.find("button", "Drain …").click()
		p.find("button", "Drain").click()
		p.until(`document.querySelector('tr[data-drain]')?.dataset.routes === '0'`)
	}, func(_ *site, sh *shell) {
		sh.run("drain", "spine-2", "--wait")
		sh.says(sh.run("drain", "list"), `spine-2\s.*\b0\b`)
	}},
	{"see which manager is master", demonstration, func(_ *site, p *page) {
		p.follow("Managers")
		p.says("one master mgmt-1 HCA-1")
	}, func(_ *site, sh *shell) {
		sh.says(sh.run("show", "managers"), "(?i)mgmt-1 HCA-1.*master|master.*mgmt-1 HCA-1")
	}},
	{"find the port with most errors", withErrors, func(_ *site, p *page) {
		p.follow("Traffic")
		p.find("combobox", "First").choose("those with most errors")
		p.until(`[...document.querySelectorAll('main table')].find(t => t.caption.textContent === 'Ports')?.tBodies[0].rows[0].textContent.startsWith('leaf-4:3')`)
	}, func(_ *site, sh *shell) {
		sh.says(sh.run("top"), `leaf-4`)
	}},
	{"hand a tenant a token", demonstration, func(_ *site, p *page) {
		p.follow("Tenants")
		p.follow("green")
		p.find("textbox", "What it is for").fill("scheduler")
		p.find("button", "Make the token").click()
		p.until(`/^ibw_[A-Za-z0-9_-]{43}$/.test(document.querySelector('[data-secret]')?.textContent)`)
		p.find("button", "Copy").click()
		p.says("copied|copy it with the keys")
	}, func(_ *site, sh *shell) {
		sh.says(sh.run("tenant", "token", "create", "--tenant", "green", "--note", "scheduler"), `^ibw_[A-Za-z0-9_-]{43}$`)
	}},
}

// withErrors is a fabric on which the manager reads the counters, and one port has errors.
func withErrors(t testing.TB) *site {
	t.Helper()
	s := newSite(t, topology.Demo())
	if err := s.devices.Execute(`PerformanceSet "leaf-4"[3] PortCounters.SymbolErrorCounter=20`); err != nil {
		t.Fatal(err)
	}
	s.eventually("the manager has read the errors", func() error {
		for _, c := range s.items("/counters") {
			if n, is := c["errors"].(float64); c["name"] == "leaf-4" && is && n > 0 {
				return nil
			}
		}
		return errors.New("there are none")
	})
	return s
}

func (s *site) has(hosts ...string) {
	s.Helper()
	members := s.membersOf("0x0100")
	for _, h := range hosts {
		if owner := s.item("/ports/" + s.guid(h))["owner"]; owner != "green" || !strings.Contains(members, s.guid(h)) {
			s.Errorf("%s is %v's, the members of its partition are %s", h, owner, members)
		}
	}
}

func (s *site) moved(host string) {
	s.Helper()
	if from, to := s.membersOf("0x0100"), s.membersOf("0x0101"); strings.Contains(from, s.guid(host)) || !strings.Contains(to, s.guid(host)) {
		s.Errorf("%s is not moved: the members are %s, and %s", s.guid(host), from, to)
	}
}

// partitions are those that the service keeps: the list has those of the policy file too.
func (s *site) partitions() []js {
	return slices.DeleteFunc(s.items("/partitions"), func(p js) bool { return p["file"] != nil })
}

func (s *site) rolledBack() {
	s.Helper()
	if list := s.partitions(); len(list) != 1 {
		s.Errorf("the partitions are %v: want the one that there was", list)
	}
}

// TestTasks does each task both ways and prints how many steps each takes: clicks, fields
// and keys here, commands there; and how many seconds, of a script that neither reads nor
// thinks, which is what the service and the page take.
func TestTasks(t *testing.T) {
	var rows []string
	for _, x := range tasks[:need.Share(2, len(tasks))] {
		t.Run(x.name, func(t *testing.T) {
			s := x.where(t)
			p := s.open(t)
			p.steps = 0
			began := time.Now()
			x.console(s, p)
			console := time.Since(began).Seconds()
			s = x.where(t)
			sh := &shell{site: s}
			began = time.Now()
			x.shell(s, sh)
			rows = append(rows, fmt.Sprintf("| %s | %d | %.1f | %d | %.1f |", x.name, p.steps, console, sh.commands, time.Since(began).Seconds()))
		})
	}
	t.Logf("\n| task | console: steps | seconds | command line: commands | seconds |\n|---|---|---|---|---|\n%s", strings.Join(rows, "\n"))
}
