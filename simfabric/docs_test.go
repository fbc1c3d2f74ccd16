package simfabric_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the examples in docs/dev/verbs.md again")

const page = "../docs/dev/verbs.md"

// titles are those of the examples on the page.
var titles = map[string]string{
	"": "A datagram", "_pKeyTable": "The P_Key table", "_memberships": "Full and limited member",
	"_pKeyIndex": "The P_Key index", "_fourQueuePairs": "Four queue pairs", "_pKeySent": "The P_Key in packets",
	"_pKeyLocation": "Values, not places", "_badPKeyCounter": "A wrong P_Key", "_pKeyChange": "The table changes",
	"_qKeySent": "The Q_Key in packets", "_qKeyReceived": "A wrong Q_Key", "_qKeyValues": "Who may set which Q_Key",
	"_qKeyPrivileged": "Privileged Q_Keys", "_reliableDatagram": "Reliable datagrams", "_pKeyAndQKey": "P_Key and Q_Key",
	"_reliableConnection": "Reliable connections", "_noBroadcast": "No broadcast", "_raw": "Raw packets",
	"_events": "Events",
}

// TestPage checks that docs/dev/verbs.md has every example of this package as it stands
// here, with what it prints. That it prints this is for Go to check.
func TestPage(t *testing.T) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range []string{"example_test.go", "example_qkey_test.go", "example_more_test.go"} {
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	var b strings.Builder
	all := doc.Examples(files...)
	slices.SortFunc(all, func(x, y *doc.Example) int { return int(x.Code.Pos() - y.Code.Pos()) })
	for _, e := range all {
		var code bytes.Buffer
		if err := format.Node(&code, fset, &ast.BlockStmt{Lbrace: e.Code.Pos(), List: e.Code.(*ast.BlockStmt).List, Rbrace: e.Code.End()}); err != nil {
			t.Fatal(err)
		}
		title, ok := titles[e.Name]
		if !ok {
			t.Errorf("example %q has no title", e.Name)
		}
		lines := strings.Split(strings.TrimRight(strings.TrimSuffix(code.String(), "}"), "\n"), "\n")[1:]
		for i, l := range lines {
			lines[i] = strings.TrimPrefix(l, "\t")
		}
		b.WriteString("\n### " + title + "\n\n" + e.Doc + "\n<details><summary>code</summary>\n\n```go\n" + strings.Join(lines, "\n") + "\n```\n</details>\n\n```\n" + e.Output + "```\n")
		if e.Doc == "" || e.Output == "" {
			t.Errorf("example %q has no words or no output", e.Name)
		}
	}
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(old), "<!-- examples -->\n")
	_, tail, ends := strings.Cut(rest, "<!-- end of examples -->")
	if !ok || !ends {
		t.Fatal("docs/dev/verbs.md has no examples between its two marks")
	}
	fresh := head + "<!-- examples -->\n" + b.String() + "\n<!-- end of examples -->" + tail
	switch {
	case fresh == string(old):
	case !*update:
		t.Error("docs/dev/verbs.md does not have the examples of this package: go test ./simfabric -update")
	default:
		if err := os.WriteFile(page, []byte(fresh), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
