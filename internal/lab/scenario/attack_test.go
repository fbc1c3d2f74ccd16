package scenario_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/internal/lab/scenario"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/topology"
)

var (
	dir = filepath.Join(root, "scenarios", "attacks")
)

// catalogue is every attack that ships, by number.
func catalogue(t *testing.T) (all []*scenario.Attack) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.ibs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		a, err := scenario.Parse(filepath.Base(f), data)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%02d-", a.Number); !strings.HasPrefix(filepath.Base(f), want) {
			t.Errorf("%s: want a name that begins with %s", f, want)
		}
		if i := slices.IndexFunc(all, func(b *scenario.Attack) bool { return b.Number == a.Number }); i >= 0 {
			t.Errorf("two attacks %d: %q and %q", a.Number, all[i].Title, a.Title)
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *scenario.Attack) int { return a.Number - b.Number })
	return all
}

// attackRun runs an attack under a profile, and gives what it came to and its report.
func attackRun(t *testing.T, a *scenario.Attack, p protect.Profile) (scenario.AttackOutcome, string, error) {
	t.Helper()
	s, err := scenario.Compile(scenario.Source{
		Name: fmt.Sprintf("attack %d under %v", a.Number, p), Text: a.Under(p), Seed: 1, Profile: p,
		Load: func(name string) (*topology.Netlist, error) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return topology.Generate(name)
			}
			l, _, err := topology.Read(data, name, nil)
			return l, err
		},
		Read: func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	_, _ = r.WriteTo(&b) // a Builder takes everything
	o, err := scenario.Judge(r)
	return o, b.String(), err
}

// open are the attacks that a profile does not stop yet, as NUMBER PROFILE. An
// entry that starts to hold has to go.
var open = []string{}

// TestAttacks runs the catalogue under every profile, twice: each attack comes to
// what its script says, and the second run prints the same bytes. With no
// protection every one succeeds: that is the control.
func TestAttacks(t *testing.T) {
	// With -short every fifth is run a second time, and the profiles beside the default one are
	// taken by turns.
	const repeatedShort, profilesShort = 5, 3
	var seen []string
	for _, a := range catalogue(t) {
		t.Run(fmt.Sprint(a.Number), func(t *testing.T) {
			if a.Expected(protect.None) != scenario.Succeeded {
				t.Error("want an attack that succeeds where nothing protects")
			}
			if a.Expected(protect.Tenant) != scenario.Stopped && a.Because == "" {
				t.Error("profile tenant does not stop it: want a because line")
			}
			came := ""
			defer func() { t.Logf("attack %d:%s", a.Number, came) }()
			for i, p := range scenario.AttackProfiles() {
				if testing.Short() && p != protect.Tenant && (a.Number+i)%profilesShort != 0 {
					seen = append(seen, fmt.Sprintf("%d %v", a.Number, p))
					continue
				}
				o, report, err := attackRun(t, a, p)
				if testing.Short() && a.Number%repeatedShort != 0 {
					// it runs once
				} else if again, second, _ := attackRun(t, a, p); again != o || second != report {
					t.Errorf("under %v the second run differs:\n%s\n%s", p, report, second)
				}
				came += " " + o.String()
				if err != nil {
					came += " (" + err.Error() + ")"
				}
				holds := o == a.Expected(p) && err == nil
				entry := fmt.Sprintf("%d %v", a.Number, p)
				if slices.Contains(open, entry) {
					seen = append(seen, entry)
					if holds {
						t.Errorf("%s holds now: take it off the list", entry)
					}
				} else if !holds {
					t.Errorf("under %v: %v, want %v; %v\n%s", p, o, a.Expected(p), err, report)
				}
			}
		})
	}
	for _, entry := range open {
		if !slices.Contains(seen, entry) {
			t.Errorf("the list has %q, which is no attack under a profile", entry)
		}
	}
}

// page is where the table of the catalogue stands.
var page = filepath.Join(root, "docs", "dev", "attacks.md")

// TestTable holds the table of docs/dev/attacks.md to the scripts. With
// IBWARDEN_WRITE_TABLE set it writes it.
func TestTable(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- table begins -->\n", "<!-- table ends -->"
	head, rest, ok := strings.Cut(string(data), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s: want %q and %q", page, begin, end)
	}
	want := table(catalogue(t))
	if os.Getenv("IBWARDEN_WRITE_TABLE") != "" {
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/dev/attacks.md is not what the scripts say; IBWARDEN_WRITE_TABLE=1 go test -run TestTable writes it:\n%s", diff)
	}
}

// table is a row for each attack.
func table(all []*scenario.Attack) string {
	var b strings.Builder
	b.WriteString("| # | attack | nothing protects | basic | tenant | strict |\n|---|---|---|---|---|---|\n")
	for _, a := range all {
		fmt.Fprintf(&b, "| %d | %s", a.Number, a.Title)
		if a.Because != "" {
			fmt.Fprintf(&b, " (%s)", a.Because)
		}
		if a.But != "" {
			fmt.Fprintf(&b, " (but %s)", a.But)
		}
		for _, p := range scenario.AttackProfiles() {
			word := a.Expected(p).String()
			if slices.Contains(open, fmt.Sprintf("%d %v", a.Number, p)) {
				word = "open"
			}
			fmt.Fprintf(&b, " | %s", word)
		}
		b.WriteString(" |\n")
	}
	return b.String()
}
