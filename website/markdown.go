package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// heading is one of a page, with the anchor that leads to it.
type heading struct {
	Level int
	ID    string
	Text  string
}

// document is Markdown as it was read.
type document struct {
	title    string
	summary  string // the first paragraph
	headings []heading
	source   []byte
	root     ast.Node
}

// anchors gives headings the anchors that GitHub gives them, so that links work on both.
type anchors map[string]int

func (a anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	id := anchor(string(value))
	n, used := a[id]
	a[id] = n + 1
	if used {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return []byte(id)
}

func (a anchors) Put(value []byte) { a[string(value)]++ }

// linkText is a link within a heading, of which the anchor has the text only.
var linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, linkText.ReplaceAllString(strings.TrimSpace(title), "$1"))
}

var markdown = goldmark.New(
	goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough,
	),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(own{}, 100))),
)

// parse reads the Markdown of a page.
func parse(source []byte) *document {
	d := &document{source: source}
	d.root = markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			raw, _ := id.([]byte)
			h := heading{n.Level, string(raw), plain(n, source)}
			if n.Level == 1 && d.title == "" {
				d.title = h.Text
			}
			d.headings = append(d.headings, h)
		case *ast.Paragraph:
			if d.summary == "" {
				d.summary = plain(n, source)
			}
		}
	}
	return d
}

// plain is the text below a node, without its marks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	ast.Walk(n, func(n ast.Node, enter bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if enter {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if enter {
				b.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return html.UnescapeString(b.String())
}

// fileName is the text of a link that has the name of a page's file, as pages have it for those
// who read them in the repository.
var fileName = regexp.MustCompile(`^[\w./-]+\.md$`)

// html renders the document, with its links as lead says. A link with the name of a file for a text
// gets the title of the page there.
func (d *document) html(lead func(destination string) (to, title string, err error)) (template.HTML, error) {
	var faults []error
	ast.Walk(d.root, func(n ast.Node, enter bool) (ast.WalkStatus, error) {
		if !enter {
			return ast.WalkContinue, nil
		}
		var err error
		var to, title string
		switch n := n.(type) {
		case *ast.Link:
			to, title, err = lead(string(n.Destination))
			if n.Destination = []byte(to); title != "" && fileName.MatchString(plain(n, d.source)) {
				n.RemoveChildren(n)
				n.AppendChild(n, ast.NewString([]byte(title)))
			}
		case *ast.Image:
			if plain(n, d.source) == "" {
				err = fmt.Errorf("the image %s has no text for those who do not see it", n.Destination)
				break
			}
			to, _, err = lead(string(n.Destination))
			n.Destination = []byte(to)
		}
		if err != nil {
			faults = append(faults, err)
		}
		return ast.WalkContinue, nil
	})
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, d.source, d.root); err != nil {
		faults = append(faults, err)
	}
	return template.HTML(b.String()), errors.Join(faults...)
}

// own renders what differs from goldmark's own: tables and blocks of code in frames that
// can be scrolled with the keyboard, commands in transcripts, and of HTML only what is listed.
type own struct{}

func (own) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(east.KindTable, renderTable)
	r.Register(east.KindTableCell, renderCell)
	r.Register(ast.KindFencedCodeBlock, renderCode)
	r.Register(ast.KindCodeBlock, renderCode)
	r.Register(ast.KindHTMLBlock, renderHTML)
	r.Register(ast.KindRawHTML, func(_ util.BufWriter, _ []byte, n ast.Node, _ bool) (ast.WalkStatus, error) {
		return ast.WalkStop, errors.New("HTML within a line: write it in Markdown, or as code")
	})
}

func renderTable(w util.BufWriter, _ []byte, _ ast.Node, enter bool) (ast.WalkStatus, error) {
	if enter {
		w.WriteString("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">\n<table>\n")
	} else {
		w.WriteString("</table>\n</div>\n")
	}
	return ast.WalkContinue, nil
}

func renderCell(w util.BufWriter, _ []byte, n ast.Node, enter bool) (ast.WalkStatus, error) {
	tag, attributes := "td", ""
	if n.Parent().Kind() == east.KindTableHeader && n.HasChildren() {
		tag, attributes = "th", ` scope="col"`
	}
	if enter {
		w.WriteString("<" + tag + attributes + ">")
	} else {
		w.WriteString("</" + tag + ">\n")
	}
	return ast.WalkContinue, nil
}

func renderCode(w util.BufWriter, source []byte, n ast.Node, enter bool) (ast.WalkStatus, error) {
	if !enter {
		return ast.WalkContinue, nil
	}
	w.WriteString(`<pre tabindex="0"><code>`)
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		shown := html.EscapeString(string(line.Value(source)))
		if command, ok := strings.CutPrefix(shown, "$ "); ok {
			shown = `<span class="prompt">$ </span><b>` + strings.TrimSuffix(command, "\n") + "</b>\n"
		}
		w.WriteString(shown)
	}
	w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

// passed is the HTML that pages may have: that which folds a part away.
var passed = map[string]bool{"<details><summary>code</summary>": true, "</details>": true}

func renderHTML(w util.BufWriter, source []byte, n ast.Node, enter bool) (ast.WalkStatus, error) {
	if !enter {
		return ast.WalkContinue, nil
	}
	block := n.(*ast.HTMLBlock)
	var b strings.Builder
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		b.Write(line.Value(source))
	}
	if block.HasClosure() {
		b.Write(block.ClosureLine.Value(source))
	}
	switch shown := strings.TrimSpace(b.String()); {
	case passed[shown]:
		w.WriteString(shown + "\n")
	case block.HTMLBlockType == ast.HTMLBlockType2: // a comment
	default:
		return ast.WalkStop, fmt.Errorf("HTML that no page may have: %q", shown)
	}
	return ast.WalkContinue, nil
}
