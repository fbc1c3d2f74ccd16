package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// switchPackage is in the overlay only: it says which mutant is on.
const switchPackage = "test/mutate/on"

const switchSource = `// Package on is part of an overlay of test/mutate.
package on

import "os"

var (
	id      = os.Getenv("` + mutantVariable + `")
	file    = os.Getenv("` + reachedVariable + `")
	reached bool
)

// Is reports whether a mutant is on.
func Is(name string) bool { return name == id }

// Reached notes that the mutant that is on has been come to.
func Reached() {
	if !reached && file != "" {
		reached = true
		_ = os.WriteFile(file, nil, 0o600)
	}
}
`

// Environment variables that a test binary is told by.
const (
	mutantVariable  = "IBWARDEN_MUTANT"
	reachedVariable = "IBWARDEN_MUTANT_REACHED"
)

// edit replaces the bytes from offset from to offset to of a file.
type edit struct {
	from, to int
	text     string
}

// overlay is a set of changed files.
type overlay struct {
	sources *sources
	edits   map[*sourceFile][]edit
	flags   map[string]bool // package and mutant that have their variable
}

func newOverlay(s *sources) *overlay {
	return &overlay{sources: s, edits: map[*sourceFile][]edit{}, flags: map[string]bool{}}
}

// needsOwnBuild reports whether the mutant changes a constant or a type, or says so.
func needsOwnBuild(s *sources, m *mutant) bool {
	return slices.ContainsFunc(m.places, func(p place) bool {
		d, err := s.find(p.pkg, p.decl)
		return err == nil && (p.alone || d.fn == nil && d.tok != token.VAR)
	})
}

// change makes the mutant the only one of a build of its own.
func (o *overlay) change(m *mutant) error {
	return o.each(m, func(d declaration, _ place, text string) error {
		o.edit(d.file, d.from, d.to, text)
		return nil
	})
}

// add puts the mutant beside others.
func (o *overlay) add(m *mutant) error {
	return o.each(m, func(d declaration, p place, text string) error {
		flag := "mutant_" + m.ident()
		code := ""
		if key := p.pkg + " " + m.name; !o.flags[key] {
			o.flags[key] = true
			code = fmt.Sprintf("\nvar %s = mutantOn.Is(%q)\n", flag, m.name)
		}
		if d.fn == nil {
			init, err := assign(d, p, flag, text)
			if err != nil {
				return err
			}
			o.edit(d.file, d.file.ast.FileEnd, d.file.ast.FileEnd, code+init)
			return nil
		}
		o.copy(d, m, p, text, code)
		return nil
	})
}

// each looks up the places of a mutant and changes their text.
func (o *overlay) each(m *mutant, do func(declaration, place, string) error) error {
	if len(m.places) == 0 {
		return fmt.Errorf("%s:%d: %s has no place: want a line with @", m.file, m.line, m.name)
	}
	for _, p := range m.places {
		d, err := o.sources.find(p.pkg, p.decl)
		if err != nil {
			return fmt.Errorf("%s: %w", m.at(p), err)
		}
		text, err := p.apply(d.file.at(d.from, d.to))
		if err == nil {
			err = do(d, p, text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.at(p), err)
		}
	}
	return nil
}

func (o *overlay) edit(f *sourceFile, from, to token.Pos, text string) {
	o.edits[f] = append(o.edits[f], edit{f.offset(from), f.offset(to), text})
}

// copy writes a changed copy of a function behind it, and the call at its start.
func (o *overlay) copy(d declaration, m *mutant, p place, body, code string) {
	f, fn := d.file, d.fn
	flag, name := "mutant_"+m.ident(), fn.Name.Name+"__"+m.ident()
	call, named := callOf(fn, name)
	if fn.Type.Results == nil {
		call += "; return"
	} else {
		call = "return " + call
	}
	o.edit(f, fn.Body.Lbrace+1, fn.Body.Lbrace+1, fmt.Sprintf(" if %s { mutantOn.Reached(); %s }; ", flag, call))
	for pos, text := range named {
		if e := (edit{f.offset(pos[0]), f.offset(pos[1]), text}); !slices.Contains(o.edits[f], e) {
			o.edits[f] = append(o.edits[f], e)
		}
	}
	head := f.at(fn.Type.Func, fn.Name.Pos())
	o.edit(f, fn.End(), fn.End(), fmt.Sprintf("\n%s\n//line %s:%d\n%s%s%s%s\n//line %s:%d\n", code, m.file, p.line,
		head, name, f.at(fn.Name.End(), fn.Body.Lbrace), body, f.path, f.line(fn.End())))
}

// callOf is a call of a copy of fn that hands on all arguments, and the names
// that receiver and parameters get for that where they have none.
func callOf(fn *ast.FuncDecl, name string) (string, map[[2]token.Pos]string) {
	named := map[[2]token.Pos]string{}
	count := 0
	names := func(list *ast.FieldList) []string {
		var out []string
		for _, field := range list.List {
			if len(field.Names) == 0 {
				count++
				n := fmt.Sprintf("mutantArg%d", count)
				named[[2]token.Pos{field.Type.Pos(), field.Type.Pos()}] = n + " "
				out = append(out, n)
			}
			for _, id := range field.Names {
				n := id.Name
				if n == "_" {
					count++
					n = fmt.Sprintf("mutantArg%d", count)
					named[[2]token.Pos{id.Pos(), id.End()}] = n
				}
				if _, variadic := field.Type.(*ast.Ellipsis); variadic {
					n += "..."
				}
				out = append(out, n)
			}
		}
		return out
	}
	call := name
	if fn.Recv != nil {
		call = names(fn.Recv)[0] + "." + name
	}
	if fn.Type.TypeParams != nil {
		call += "[" + strings.Join(names(fn.Type.TypeParams), ", ") + "]"
	}
	return call + "(" + strings.Join(names(fn.Type.Params), ", ") + ")", named
}

// assign is an init function that gives a variable the changed value.
func assign(d declaration, p place, flag, spec string) (string, error) {
	fset := token.NewFileSet()
	const before = "package p\nvar "
	f, err := parser.ParseFile(fset, "", before+spec+"\n", parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	values := f.Decls[0].(*ast.GenDecl).Specs[0].(*ast.ValueSpec)
	for i, n := range values.Names {
		if n.Name == p.decl && len(values.Values) == len(values.Names) {
			from, to := fset.Position(values.Values[i].Pos()).Offset, fset.Position(values.Values[i].End()).Offset
			return fmt.Sprintf("\nfunc init() { if %s { mutantOn.Reached(); %s = %s } }\n", flag, p.decl, (before + spec)[from:to]), nil
		}
	}
	return "", fmt.Errorf("the variable has no value of its own in %s", d.file.rel)
}

// write puts the changed files into a directory and returns the file that go
// build -overlay reads.
func (o *overlay) write(dir string) (string, error) {
	replace := map[string]string{}
	put := func(path, text string) error {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[path] = to
		return os.WriteFile(to, []byte(text), 0o600)
	}
	if err := put(filepath.Join(o.sources.root, filepath.FromSlash(switchPackage), "on.go"), switchSource); err != nil {
		return "", err
	}
	for f, edits := range o.edits {
		if err := put(f.path, f.edited(edits, o.imports())); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "overlay.json")
	return to, os.WriteFile(to, list, 0o600)
}

// imports is what a file needs behind its package clause.
func (o *overlay) imports() string {
	if len(o.flags) == 0 {
		return "" // a mutant in a build of its own
	}
	return fmt.Sprintf("; import mutantOn %q", o.sources.module+"/"+switchPackage)
}

// edited is the text of a file after edits, with imports behind the package clause.
func (f *sourceFile) edited(edits []edit, imports string) string {
	end := f.offset(f.ast.Name.End())
	edits = append([]edit{{end, end, imports}}, edits...)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(f.text[at:e.from])
		b.WriteString(e.text)
		at = e.to
	}
	b.WriteString(f.text[at:])
	return b.String()
}

// packages are those that the overlay changes, by the directory of their module.
func (o *overlay) packages() map[string][]string {
	out := map[string][]string{}
	for f := range o.edits {
		module, pkg := o.sources.moduleOf(path.Dir(f.rel))
		if !slices.Contains(out[module], pkg) {
			out[module] = append(out[module], pkg)
		}
	}
	return out
}
