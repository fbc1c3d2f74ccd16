package certificate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

const proofDir = "../../../verify/proof"

// proofSources are the files of the proof in the order in which they are compiled.
var proofSources = []string{"Checker.v", "Model.v", "Sound.v", "Example.v", "Extract.v"}

// copyProof copies the proof, since Coq writes beside what it compiles.
func copyProof(t *testing.T) string {
	need.Program(t, "coqc")
	dir := t.TempDir()
	for _, name := range append([]string{"main.ml", "Makefile"}, proofSources...) {
		text, err := os.ReadFile(filepath.Join(proofDir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// prove compiles the proof, and returns the program that Coq extracts.
func prove(t *testing.T) string {
	dir := copyProof(t)
	out, err := exec.Command("make", "-C", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// Coq prints this where the theorem rests on no axiom and on nothing that was admitted.
	if strings.Count(string(out), "Closed under the global context") != 1 {
		t.Fatalf("want that the theorem rests on nothing:\n%s", out)
	}
	return filepath.Join(dir, "proved")
}

// TestProofRestsOnNothing: the theorem says what it is read to say, and no file assumes anything.
func TestProofRestsOnNothing(t *testing.T) {
	assumes := regexp.MustCompile(`\b(Axiom|Axioms|Admitted|admit|Conjecture|Parameter|Parameters|Unset|bypass_check)\b`)
	files, err := filepath.Glob(filepath.Join(proofDir, "*.v"))
	if err != nil || len(files) != len(proofSources) {
		t.Fatalf("%d files, want %d: %v", len(files), len(proofSources), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := assumes.Find(text); m != nil {
			t.Errorf("%s has %s", name, m)
		}
		if filepath.Base(name) == "Sound.v" && !strings.Contains(string(text), "Theorem accepted_is_isolated : forall F, check F = Yes -> forall W, isolated F W.\n") {
			t.Errorf("%s: the theorem is not there", name)
		}
	}
}

// proofBreaks are what stands in Checker.v, and what breaks it.
var proofBreaks = [][2]string{
	{"checks (keys_in d p) && checks (keys_out d p) && empty (p_keys p))", "(checks (keys_in d p) || checks (keys_out d p)) && empty (p_keys p))"},
	{"negb (checks (raw_in d p) && checks (raw_out d p))", "negb (checks (raw_in d p) || checks (raw_out d p))"},
	{"&& empty (p_keys p))", ")"},
	{"(s =? 1) || (s =? 2)", "(s =? 1) || (s =? 2) || (s =? 3)"},
	{"if known (peer (p_at p)) then false", "if true then false"},
	{"GNone | GWeak | GShared => true", "GNone | GWeak => true"},
	{"GUnread | GHidden => true", "GUnread => true"},
	{"|| match protect d with Some 0 => true | _ => false end", ""},
	{"|| match lease d with Some 0 => false | _ => true end", ""},
	{"|| negb (known (protect d)) || negb (known (lease d))", ""},
	{"negb (listed c) || lost", "lost"},
	{"|| lost (c_b c)", ""},
	{"sends := if checks (keys_in d p) then p_keys p else None", "sends := if checks (keys_out d p) then p_keys p else None"},
	{"gets := if checks (keys_out d p) then p_keys p else None", "gets := p_keys p"},
	{"raw_sends := negb (checks (raw_in d p))", "raw_sends := false"},
	{"negb (known n) || is_unread can || is_unread on", "negb (known n) || is_unread on"},
	{"| None => None\n    end\n  else match", "| None => Some {| sends := None; gets := Some []; raw_sends := true; raw_gets := true |}\n    end\n  else match"},
	{"| None, Some t | Some t, None => negb (empty (Some t))", "| None, Some t | Some t, None => false"},
	{"(base x =? base y) && (full x || full y)", "base x =? base y"},
	{"  negb well_formed\n  || match", "  match"},
	{"known (port_at (d_guid d, i))", "true"},
	{"|| existsb guard_unknown (devices F)", ""},
	{"|| existsb cable_unknown (cables F)", ""},
	{"|| existsb behind_unknown (ports F)", ""},
	{"|| existsb (fun e => negb (known (hold e))) (ends F)", ""},
	{"|| existsb (fun s => existsb (crosses s) (ends F)) (ends F)", ""},
}

// TestBrokenRulesHaveNoProof: without a clause of the checker that keeps packets apart the proof does not
// go through.
func TestBrokenRulesHaveNoProof(t *testing.T) {
	need.Long(t, "Coq compiles the proof for each break; a soak takes all of them")
	dir := copyProof(t)
	whole, err := os.ReadFile(filepath.Join(dir, "Checker.v"))
	if err != nil {
		t.Fatal(err)
	}
	compile := func(rules string) error {
		if err := os.WriteFile(filepath.Join(dir, "Checker.v"), []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Checker.v", "Model.v", "Sound.v"} {
			cmd := exec.Command("coqc", "-q", "-Q", ".", "Verify", name)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil && name != "Sound.v" {
				t.Fatalf("%s: %v: %s", name, err, out) // the break is no program
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := compile(string(whole)); err != nil {
		t.Fatalf("the proof itself: %v", err)
	}
	r := rand.New(rand.NewPCG(need.Seed(t, 1), 0))
	breaks := slices.Clone(proofBreaks)
	r.Shuffle(len(breaks), func(i, j int) { breaks[i], breaks[j] = breaks[j], breaks[i] })
	for _, x := range breaks[:need.Rounds(5, uint64(len(breaks)))] {
		broken := strings.Replace(string(whole), x[0], x[1], 1)
		if broken == string(whole) {
			t.Errorf("Checker.v has no %q", x[0])
		} else if err := compile(broken); err == nil {
			t.Errorf("with %q for %q there is a proof too", x[1], x[0])
		}
	}
}

// edits change one fact of a certificate, to something that its format allows.
type edits struct {
	r    *rand.Rand
	sets int
}

var (
	word    = regexp.MustCompile(` (entries|enforces|filters|key|protect|lease|state|enforce|filter|keys)=(\w+)`)
	classOf = regexp.MustCompile(` class=\d+`)
)

func (e *edits) pick(of ...string) string { return of[e.r.IntN(len(of))] }

func (e *edits) value(name string) string {
	switch name {
	case "enforces", "filters", "enforce", "filter":
		return e.pick("unread", "no", "in", "out", "both", "both")
	case "key":
		return e.pick("unread", "own", "own", "shared", "weak", "none", "hidden")
	case "protect":
		return e.pick("unread", "0", "1", "2")
	case "lease":
		return e.pick("unread", "0", "15")
	case "entries":
		return e.pick("unread", "0", "32")
	case "state":
		return e.pick("unread", "1", "2", "3", "4")
	default:
		return e.pick("unread", "none", fmt.Sprint(e.r.IntN(e.sets)), fmt.Sprint(e.r.IntN(e.sets)))
	}
}

// one edits one line.
func (e *edits) one(lines []string) []string {
	of := func(kind string) int {
		var at []int
		for i, l := range lines {
			if strings.HasPrefix(l, kind) {
				at = append(at, i)
			}
		}
		if len(at) == 0 {
			return 0
		}
		return at[e.r.IntN(len(at))]
	}
	switch e.r.IntN(8) {
	case 0:
		i := of("raw ")
		lines[i] = e.pick("raw denied", "raw allowed")
	case 1:
		if i := of("cable "); i > 0 {
			return slices.Delete(lines, i, i+1)
		}
	case 2:
		if i := of("cable "); i > 0 && e.r.IntN(2) == 0 {
			lines[i] = strings.TrimSuffix(lines[i], " listed") + " unlisted"
		}
	case 3: // two end ports change their classes
		i, j := of("end "), of("end ")
		x, y := classOf.FindString(lines[i]), classOf.FindString(lines[j])
		lines[i], lines[j] = strings.Replace(lines[i], x, y, 1), strings.Replace(lines[j], y, x, 1)
	default:
		i := of(e.pick("switch ", "port ", "port ", "end "))
		at := word.FindAllStringSubmatchIndex(lines[i], -1)
		if len(at) > 0 {
			m := at[e.r.IntN(len(at))]
			lines[i] = lines[i][:m[4]] + e.value(lines[i][m[2]:m[3]]) + lines[i][m[5]:]
		}
	}
	return lines
}

// TestProvedChecker: the checker that a stranger reads and the one that Coq proved say the same of random
// fabrics, with and without faults, and of their certificates with words changed at random.
func TestProvedChecker(t *testing.T) {
	need.Long(t, "Coq compiles the proof")
	rounds := need.Rounds(400, 10_000)
	first, c, proved := need.Seed(t, 1), build(t), prove(t)
	dir := t.TempDir()
	said := map[string]string{} // by file, the verdict of the checker
	var files []string
	counts, refused := map[string]int{}, 0
	for seed := first; seed < first+rounds; seed++ {
		w := newWorld(seed)
		if seed%2 == 1 {
			w.fault().do()
		}
		text := w.certificate()
		r := rand.New(rand.NewPCG(seed, 7))
		for i := range 3 {
			if i > 0 {
				lines := strings.Split(string(text), "\n")
				e := edits{r, strings.Count(string(text), "\nkeys ")}
				for range i {
					lines = e.one(lines)
				}
				text = summed([]byte(strings.Join(lines, "\n")))
			}
			status, out := c.check(text)
			if strings.Contains(out, "is no certificate") {
				refused++
				continue
			}
			name := filepath.Join(dir, fmt.Sprintf("%d-%d", seed, i))
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
			said[name], files = []string{"yes", "no", "unknown"}[status], append(files, name)
			counts[said[name]]++
		}
	}
	for some := range slices.Chunk(files, 500) {
		out, err := exec.Command(proved, some...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		if len(lines) != len(some) {
			t.Fatalf("%d verdicts of %d files", len(lines), len(some))
		}
		for i, name := range some {
			if want := said[name] + " " + name; lines[i] != want {
				_, why := c.check(readFile(t, name))
				t.Fatalf("seed %s: the checker says %q, the proved one %q\n%s", filepath.Base(name), want, lines[i], why)
			}
		}
	}
	t.Logf("%d certificates, by verdict %v; %d edits gave no certificate", len(files), counts, refused)
	if min(counts["yes"], counts["no"], counts["unknown"]) < len(files)/20 || refused > len(files)/2 {
		t.Error("want some of each verdict, and that most edits give certificates")
	}
}

func readFile(t *testing.T, name string) []byte {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
