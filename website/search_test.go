package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// asking has node read the index and the script of the site, and print what each query finds.
const asking = `
const window = globalThis.window = {};
require(process.argv[1] + "/search-index.js");
const { find } = require(process.argv[1] + "/search.js");
const found = {};
for (const query of process.argv.slice(2)) found[query] = find(window.searchIndex, query, 20);
console.log(JSON.stringify(found));
`

type result struct{ Path, Title, Heading string }

// TestSearch: the search of the site finds the part that is about something among the first, by
// whole words, by their beginnings and by several, and nothing for what no page has.
func TestSearch(t *testing.T) {
	node := need.Program(t, "node")
	dir := t.TempDir()
	all := files(t)
	for _, name := range []string{"search.js", indexFile} {
		if len(all[name]) == 0 {
			t.Fatalf("the site has no %s", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), all[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := map[string]string{ // a query, and what has to be among the first five
		"balance tenants":   "routing.html#balance-for-tenants",
		"M_Key":             "keys.html",
		"pkeys nothing":     "tutorial-student.html",
		"two managers":      "managers.html#set-up-two-managers",
		"shares of lin":     "settings.html#shares-of-links",
		"idempotency-key":   "api.html#writes",
		"ibwarden handover": "commands/ibwarden-handover.html",
	}
	args := []string{"-e", asking, dir, "zyzzyva", "", "routing zyzzyva"}
	for query := range first {
		args = append(args, query)
	}
	out, err := exec.Command(node, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var found map[string][]result
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	for _, query := range []string{"zyzzyva", "", "routing zyzzyva"} {
		if len(found[query]) > 0 {
			t.Errorf("%q finds %v", query, found[query])
		}
	}
	for query, want := range first {
		has := false
		for i, r := range found[query] {
			path, anchor, _ := strings.Cut(r.Path, "#")
			if all[path] == nil || anchor != "" && !strings.Contains(string(all[path]), `id="`+anchor+`"`) {
				t.Errorf("%q finds %s, which is not there", query, r.Path)
			}
			if r.Title == "" {
				t.Errorf("%q finds %s without a title", query, r.Path)
			}
			has = has || i < 5 && strings.HasPrefix(r.Path, want)
		}
		if !has {
			t.Errorf("%q does not find %s among the first, but %v", query, want, found[query])
		}
	}
}

// The index is small enough to be fetched by somebody who searches once.
func TestIndexIsSmall(t *testing.T) {
	const most = 1 << 20
	if n := len(files(t)[indexFile]); n < 1<<16 || n > most {
		t.Errorf("%d bytes of index, want %d at most", n, most)
	}
}

// TestLinkTexts: no link of a page has the name of the file as its text where it leads to a page of the site.
func TestLinkTexts(t *testing.T) {
	links := 0
	for name, text := range files(t) {
		if filepath.Ext(name) != ".html" || strings.HasPrefix(name, "files/") {
			continue
		}
		for _, e := range elements(t, name, text) {
			if e.tag != "a" || e.attr["href"] == "" {
				continue
			}
			if links++; fileName.MatchString(e.text) && !strings.Contains(e.attr["href"], "files/") {
				t.Errorf("%s: the link to %s has the text %s", name, e.attr["href"], e.text)
			}
		}
	}
	if links < 5000 {
		t.Errorf("%d links: looking for the wrong thing", links)
	}
}

// TestColumns: a page has the place for a list of pages only where it has one, so that the home page is
// not squeezed into it.
func TestColumns(t *testing.T) {
	for name, text := range files(t) {
		if filepath.Ext(name) != ".html" {
			continue
		}
		list := strings.Contains(string(text), `<nav class="pages"`)
		if beside := strings.Contains(string(text), `<div class="columns beside">`); beside != list {
			t.Errorf("%s: two columns: %v; a list of pages: %v", name, beside, list)
		}
	}
	if css := string(style); strings.Contains(css, ".columns {") || !strings.Contains(css, ".beside { display: grid;") {
		t.Error("style.css makes columns of every page")
	}
}
