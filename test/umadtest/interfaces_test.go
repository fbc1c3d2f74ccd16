package umadtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// door is a way for a program to the fabric of a rig, at a node of it.
type door struct {
	name string
	run  func(node string, words ...string) output
	// start runs a program until stop is called, or the test ends.
	start func(node string, words ...string) (stop func())
}

// doors are the ways: inside, with devices, and out here, over the ibsim protocol
// under libumad2sim (ibwarden speaks it itself).
func (r *rig) doors(preload string) []door {
	out := func(node string, words []string) func(context.Context) *exec.Cmd {
		return func(ctx context.Context) *exec.Cmd {
			// libumad2sim makes and removes a hundred files for every program.
			dir := filepath.Join(r.dir, fmt.Sprintf("out-%d", rigs.Add(1)))
			if err := os.Mkdir(dir, 0o700); err != nil {
				r.Fatal(err)
			}
			words, env := ibsimtest.Limited(words), []string{"IBSIM_SOCKNAME=" + r.name, "SIM_HOST=" + node}
			if words[0] == "ibwarden" {
				words[0] = must(binary())
				words[slices.Index(words, "umad")] = "ibsim:" + r.name
			} else {
				env = append(env, "LD_PRELOAD="+preload)
				words[0] = must(program(words[0]))
			}
			cmd := exec.CommandContext(ctx, words[0], words[1:]...)
			tame(cmd, dir)
			cmd.Env = append(cmd.Env, env...)
			return cmd
		}
	}
	return []door{
		{"devices", r.run, func(node string, words ...string) func() {
			_, stop := r.start(node, words...)
			return stop
		}},
		{"the ibsim protocol",
			func(node string, words ...string) output { return r.finish(words, out(node, words)) },
			func(node string, words ...string) func() {
				_, stop := r.background(words, out(node, words))
				return stop
			}},
	}
}

// One fabric behind every door: whichever way a manager came, who comes by either
// gets its answers, and is heard.
func TestEveryInterface(t *testing.T) {
	need.Long(t, "managers behind every door")
	needPrograms(t, "opensm", "saquery", "sminfo", "smpquery", "ibping")
	tools, err := ibsimtest.FindTools()
	need.Need(t, err)
	for _, manager := range []struct {
		name  string
		words func(r *rig) []string
	}{
		// With enforcement OpenSM's limited members cannot ask it.
		{"opensm", func(r *rig) []string {
			return []string{"opensm", "-F", os.DevNull, "-e", "-Z", "off", "-f", filepath.Join(r.dir, "opensm.log")}
		}},
		{"ibwarden", func(r *rig) []string {
			return []string{"ibwarden", "run", "--fabric", "umad", "--profile", "basic", "--quarantine", "0s", "--policy", r.file("all.yaml", "version: 1\ndefault: full\n")}
		}},
	} {
		for way := range 2 {
			r := newRig(t, "fattree,radix=4,levels=2")
			doors := r.doors(tools.Umad2sim)
			t.Run(fmt.Sprintf("%s by %s", manager.name, doors[way].name), func(t *testing.T) {
				r := r.in(t)
				hosts := r.hosts()
				// An OpenSM whose devices are gone does not come to its end: it ends first.
				defer doors[way].start(hosts[0].ID, manager.words(r)...)()
				r.eventually("the manager answers", func() bool {
					return strings.Contains(r.run(hosts[1].ID, "saquery", "-t", "200", "CPI").stdout, "Capability mask")
				})
				m := regexp.MustCompile(`sm lid (\d+)`).FindStringSubmatch(r.ask(hosts[1].ID, "sminfo"))
				if m == nil {
					t.Fatal("sminfo prints no LID")
				}
				lid, far := m[1], r.lid(hosts[2])
				r.start(hosts[2].ID, "ibping", "-S")
				r.eventually("the server of ibping answers", func() bool {
					return r.run(hosts[1].ID, "ibping", "-c", "1", "-t", "200", far).status == 0
				})
				for _, d := range doors {
					at := hosts[3].ID
					wanted := map[string]string{
						"sminfo":                   "SMINFO_MASTER",
						"saquery CPI":              "Capability mask",
						"smpquery nodeinfo " + lid: "NodeType",
						"perfquery " + lid + " 1":  "PortXmitData",
						"ibping -c 3 -f " + far:    "3 packets transmitted, 3 received",
					}
					if way == 0 { // what libumad2sim sends ends after 256 bytes
						wanted["saquery NR"] = "NodeRecord dump"
					}
					// A port is that of one door at a time, and the kernel says that a file was closed when its
					// process is gone already.
					r.eventually("the port is free for "+d.name, func() bool { return d.run(at, "sminfo").status == 0 })
					for words, want := range wanted {
						o := d.run(at, strings.Fields(words)...)
						if o.status != 0 || !strings.Contains(o.stdout, want) {
							t.Errorf("%s by %s: %d, want %q\n%s%s", words, d.name, o.status, want, o.stdout, o.stderr)
						}
					}
				}
			})
			r.kill()
		}
	}
}
