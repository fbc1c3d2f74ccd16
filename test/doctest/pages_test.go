package doctest

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	_ "github.com/ibwarden/ibwarden/internal/app/cli" // what is run: go test keeps no result of another one
	"github.com/ibwarden/ibwarden/test/need"
)

var update = flag.Bool("update", false, "write what commands print into the pages")

// notRunBlocks is how many blocks of all pages say that nothing can run them.
const notRunBlocks = 0

// longPages are those that make test leaves out, with why.
var longPages = map[string]string{
	"tutorial-linux.md": "Linux machines boot",
	"devices.md":        "many programs, one after the other",
	"doctor.md":         "many programs, one after the other",
	"migrate.md":        "OpenSM runs, and is taken over",
	"seeds.md":          "programs for each of the five texts",
}

// updatePatience is how long -update waits for what a page says that a command in
// the background prints.
const updatePatience = 10 * time.Second

// program is the ibwarden of this tree.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if program, err = need.Ibwarden(); err == nil {
		// Examples that are programs are beside it.
		err = need.Build(filepath.Dir(program), need.Module+"/examples/...")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(need.Main(m))
}

// needs are what commands need that a machine may lack, by what they say.
var needs = []struct {
	says *regexp.Regexp
	err  func() error
}{
	{regexp.MustCompile(`\bsim exec\b|--devices\b`), devices},
	{regexp.MustCompile(`libumad2sim`), preload},
	{regexp.MustCompile(`\bcurl\b`), installed("curl")},
	{regexp.MustCompile(`\bssh-keygen\b`), installed("ssh-keygen")},
	{regexp.MustCompile(`\bopensm\b`), installed("opensm")},
	{regexp.MustCompile(`\bibsim -s\b`), installed("ibsim")},
	{regexp.MustCompile(`\btshark\b`), installed("tshark")},
	{regexp.MustCompile(`\b(saquery|smpquery|sminfo|ibstat|ibping|ibnetdiscover|perfquery)\b`), installed("smpquery")},
	{regexp.MustCompile(`\bman\b`), installed("man")},
	{regexp.MustCompile(`\bsim guest\b`), installed("qemu-system-x86_64")},
}

func installed(name string) func() error {
	return func() error {
		_, err := need.Find(name)
		return err
	}
}

func preload() error {
	found, err := filepath.Glob("/usr/lib/*/umad2sim/libumad2sim.so")
	if err == nil && len(found) == 0 {
		err = errors.New("libumad2sim.so is not installed")
	}
	return err
}

func devices() error {
	if os.Geteuid() != 0 {
		return errors.New("sim exec needs root")
	}
	if _, err := os.Stat("/dev/fuse"); errors.Is(err, fs.ErrNotExist) {
		return errors.New("sim exec needs FUSE: there is no /dev/fuse")
	}
	return nil
}

func (b *block) need() error {
	for _, c := range b.commands {
		for _, n := range needs {
			if !n.says.MatchString(c.text) {
				continue
			}
			if err := n.err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestPages runs every command of every page, and holds what it prints against
// the page.
func TestPages(t *testing.T) {
	vary := variable(t)
	commands, left := 0, 0
	for i, p := range pages(t) {
		for _, b := range p.blocks {
			commands += len(b.commands)
			if b.notRun != "" {
				left++
			}
		}
		t.Run(filepath.Base(p.name), func(t *testing.T) {
			if len(p.blocks) == 0 {
				return
			}
			if why := longPages[filepath.Base(p.name)]; why != "" {
				need.Long(t, why)
			}
			t.Parallel()
			p.check(t, open(t, program, fmt.Sprintf("d%dp%d", os.Getpid(), i)), vary)
		})
	}
	if commands == 0 {
		t.Error("no page shows a command")
	}
	if left != notRunBlocks {
		t.Errorf("%d blocks say that nothing can run them, want %d", left, notRunBlocks)
	}
}

// check runs a page. What follows a block that cannot be run here may rest on it,
// and is left out too.
func (p *page) check(t *testing.T, s *session, vary []pattern) {
	printed := map[int][]string{}
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.notRun != "" {
			continue
		}
		if b.file != "" {
			if err := os.WriteFile(filepath.Join(s.shell.Dir, b.file), []byte(b.text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := b.need(); err != nil {
			need.Need(t, fmt.Errorf("%s from line %d on: %w", p.name, b.line, err))
		}
		for j := range b.commands {
			p.checkCommand(t, s, &b.commands[j], vary, printed)
		}
	}
	if *update && len(printed) > 0 {
		if err := os.WriteFile(p.name, []byte(p.with(printed)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// ownData is a manager on an adapter that keeps its data where the page says.
var ownData = regexp.MustCompile(`--fabric umad.* --data `)

func (p *page) checkCommand(t *testing.T, s *session, c *command, vary []pattern, printed map[int][]string) {
	if strings.Contains(c.text, "--fabric umad") && !ownData.MatchString(c.text) {
		t.Fatalf("%s:%d: $ %s\nwithout --data, or IBWARDEN_DATA, this writes into /var/lib/ibwarden of the reader", p.name, c.from, c.text)
	}
	wait := patience
	if *update {
		wait = updatePatience
	}
	got, err := s.run(c, wait, func(lines []string) bool { return same(c.want, lines, vary, true) })
	if *update && errors.Is(err, errNotEnough) {
		printed[c.from] = got // all of it: who updates pages cuts it down
		return
	}
	want := c.want
	for len(want) > 0 && want[len(want)-1] == "" {
		want = want[:len(want)-1] // an empty line before the next command
	}
	switch {
	case err == nil && same(want, got, vary, c.background()):
	case err == nil && *update:
		printed[c.from] = got
	default:
		t.Errorf("%s:%d: $ %s\nprints\n%s\nThe page has\n%s", p.name, c.from, c.text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		if err != nil {
			t.Fatal(err)
		}
	}
}
