package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// indexFile is the index of the words of all pages, which search.js reads.
const indexFile = "search-index.js"

// index says which word is in which part of which page. A part is what stands below a heading.
type index struct {
	Pages [][3]any         `json:"pages"` // path, title, and whether the page is one of details
	Parts [][3]any         `json:"parts"` // number of the page, heading, anchor
	Words map[string][]int `json:"words"` // numbers of parts
}

// indexOf is the index of pages, but for files of the repository that are shown as they are.
func indexOf(pages []*page) *index {
	x := &index{Words: map[string][]int{}}
	for _, p := range pages {
		if p.read == nil {
			continue
		}
		number := len(x.Pages)
		x.Pages = append(x.Pages, [3]any{p.Path, p.Title, p.detail()})
		part := -1
		for n := p.read.root.FirstChild(); n != nil; n = n.NextSibling() {
			if h, ok := n.(*ast.Heading); ok || part < 0 {
				heading, id := "", ""
				if ok {
					heading = plain(h, p.read.source)
				}
				if raw, _ := n.AttributeString("id"); ok && h.Level > 1 {
					anchor, _ := raw.([]byte)
					id = string(anchor)
				}
				part = len(x.Parts)
				x.Parts = append(x.Parts, [3]any{number, heading, id})
			}
			x.add(part, all(n, p.read.source))
		}
	}
	return x
}

// detail reports whether a page is for developers, or one of many that are made from the code: others
// are found before it.
func (p *page) detail() bool {
	return p.Section != nil && (p.Section.Aside || !slices.Contains(p.Section.Pages, p))
}

// add adds the words of a text to a part.
func (x *index) add(part int, text string) {
	for _, w := range terms(text) {
		if in := x.Words[w]; len(in) == 0 || in[len(in)-1] != part {
			x.Words[w] = append(in, part)
		}
	}
}

var term = regexp.MustCompile(`[\p{L}\p{N}_]+`)

// longest is how many bytes a word of the index may have: no more than what somebody would search for.
const longest = 40

// terms are the words of a text: without underscores, so that P_Key is found as pkey too. search.js
// has the same.
func terms(text string) []string {
	out := term.FindAllString(strings.ToLower(text), -1)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "_", "")
	}
	return slices.DeleteFunc(out, func(w string) bool { return w == "" || len(w) > longest })
}

// all is the text below a node with that of its code.
func all(n ast.Node, source []byte) string {
	var b strings.Builder
	ast.Walk(n, func(n ast.Node, enter bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if enter {
				b.Write(n.Segment.Value(source)) // a word may be several: an underscore parts them
				if n.SoftLineBreak() {
					b.WriteByte('\n')
				}
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if enter {
				b.Write(n.Lines().Value(source))
			}
		}
		if !enter && n.Type() == ast.TypeBlock {
			b.WriteByte('\n')
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// script is the index as a script, which a page can load from a file too.
func (x *index) script() ([]byte, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte("window.searchIndex = "), text, []byte(";\n")), nil
}
