package archtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestRecipes walks the recipes of CONTRIBUTING.md: it adds a flag, a metric, a field of the API, a check
// of audit and an attribute, in the places that the recipe names and nowhere else, in an overlay (go
// help build), and sees them work.
//
// A file of testdata/recipes begins with the title of the recipe. Then it has the files that are changed:
// "> text" names a line by what it contains, once in the file, and the lines after it are added there;
// "> end" is behind the last line, and a file that there is not is new. NEXT_CHECK is the number of the next check. "run" has the commands: "COMMAND => TEXT" passes and prints TEXT;
// "fails: COMMAND => TEXT" fails and prints TEXT, as long as what the recipe writes besides is not there;
// "without FILE: COMMAND => TEXT" does so if that file was forgotten.
func TestRecipes(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	need.Long(t, "builds the program for each recipe")
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/recipes/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no recipes:", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(bytes.ReplaceAll(data, []byte("NEXT_CHECK"), strconv.AppendInt(nil, int64(audit.MaxNumber)+1, 10)))
			title := "**" + strings.TrimSpace(string(a.Comment))
			_, recipe, some := strings.Cut(string(text), title)
			if !some {
				t.Fatalf("CONTRIBUTING.md has no recipe %q", title)
			}
			recipe, _, _ = strings.Cut(recipe, "\n**")
			walk(t, root, a, recipe)
		})
	}
}

func walk(t *testing.T, root string, a *txtar.Archive, recipe string) {
	dir := t.TempDir()
	overlay := map[string]string{} // the changed file of a file of the tree
	var commands string
	for i, f := range a.Files {
		if f.Name == "run" {
			commands = string(f.Data)
			continue
		}
		if !strings.HasSuffix(f.Name, "_test.go") && !strings.Contains(recipe, f.Name) && !strings.Contains(recipe, filepath.Dir(f.Name)+"`") {
			t.Errorf("the recipe does not say that %s is changed", f.Name)
		}
		changed, err := withAdded(root, f)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, fmt.Sprint(i, filepath.Ext(f.Name)))
		if err := os.WriteFile(to, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(root, f.Name)] = to
	}
	run := func(command, forgotten string) (string, error) {
		replace := map[string]string{}
		for file, by := range overlay {
			if file != filepath.Join(root, forgotten) {
				replace[file] = by
			}
		}
		list, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "overlay.json")
		if err := os.WriteFile(path, list, 0o600); err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(command) // go run|test ...
		c := exec.Command(words[0], slices.Concat(words[1:2], []string{"-overlay", path}, words[2:])...)
		c.Dir = root
		out, err := c.CombinedOutput()
		return string(out), err
	}
	walked := 0
	for line := range strings.Lines(commands) {
		command, want, some := strings.Cut(strings.TrimSpace(line), " => ")
		if !some {
			continue
		}
		walked++
		forgotten, fails := "", false
		if rest, is := strings.CutPrefix(command, "without "); is {
			forgotten, command, fails = strings.Cut(rest, ": ")
		} else {
			command, fails = strings.CutPrefix(command, "fails: ")
		}
		out, err := run(command, forgotten)
		if !strings.Contains(out, want) || (err != nil) != fails {
			t.Errorf("%s: %v, want %q in\n%s", line, err, want, out)
		}
	}
	if walked == 0 {
		t.Error("the recipe runs nothing")
	}
}

// withAdded is a file of the tree with what is added to it.
func withAdded(root string, f txtar.File) (string, error) {
	old, err := os.ReadFile(filepath.Join(root, f.Name))
	if os.IsNotExist(err) {
		return string(f.Data), nil
	}
	text := string(old)
	for i, block := range strings.Split("\n"+string(f.Data), "\n> ") {
		anchor, added, _ := strings.Cut(block, "\n")
		switch {
		case i == 0: // nothing stands before the first
			continue
		case anchor == "end":
			text += added + "\n"
			continue
		}
		if n := strings.Count(text, anchor); n != 1 {
			return "", fmt.Errorf("%s: %q occurs %d times, want once", f.Name, anchor, n)
		}
		at := strings.Index(text, anchor)
		at += strings.IndexByte(text[at:], '\n') + 1
		text = text[:at] + added + "\n" + text[at:]
	}
	return text, err
}
