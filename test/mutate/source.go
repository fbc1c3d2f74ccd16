package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// declaration is where a name is declared.
type declaration struct {
	file     *sourceFile
	fn       *ast.FuncDecl // of a function or method
	spec     ast.Spec      // of a variable, constant or type
	tok      token.Token   // var, const or type
	from, to token.Pos     // what a mutant may change: a body, or a whole specification
}

// sourceFile is one file of a package.
type sourceFile struct {
	path string // absolute
	rel  string // from the root of the repository
	text string
	fset *token.FileSet
	ast  *ast.File
}

func (f *sourceFile) offset(p token.Pos) int       { return f.fset.Position(p).Offset }
func (f *sourceFile) line(p token.Pos) int         { return f.fset.Position(p).Line }
func (f *sourceFile) at(from, to token.Pos) string { return f.text[f.offset(from):f.offset(to)] }

// sources reads packages of the repository, each once.
type sources struct {
	root     string
	module   string                            // its path in import statements
	packages map[string]map[string]declaration // directory to name to declaration
}

func newSources(root string) (*sources, error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(mod), "\n")
	module, ok := strings.CutPrefix(line, "module ")
	if !ok {
		return nil, fmt.Errorf("%s/go.mod begins with %q: want module and a path", root, line)
	}
	return &sources{root: root, module: strings.TrimSpace(module), packages: map[string]map[string]declaration{}}, nil
}

// moduleOf is the directory of the module that a package is in, and the package from there:
// some directories of the repository have a module of their own.
func (s *sources) moduleOf(pkg string) (dir, rel string) {
	for dir = pkg; dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(dir), "go.mod")); err == nil {
			break
		}
	}
	if rel, _ = strings.CutPrefix(pkg, dir+"/"); dir == pkg { // without a prefix it is the whole
		rel = "."
	}
	return filepath.Join(s.root, filepath.FromSlash(dir)), "./" + rel
}

// find looks for a declaration.
func (s *sources) find(pkg, name string) (declaration, error) {
	if s.packages[pkg] == nil {
		all, err := s.read(pkg)
		if err != nil {
			return declaration{}, err
		}
		s.packages[pkg] = all
	}
	d, ok := s.packages[pkg][name]
	if !ok {
		return declaration{}, fmt.Errorf("no %s in %s", name, pkg)
	}
	return d, nil
}

// read parses the files of a package that are built here, but its tests.
func (s *sources) read(pkg string) (map[string]declaration, error) {
	files, err := s.files(pkg)
	if err != nil {
		return nil, err
	}
	out := map[string]declaration{}
	for _, f := range files {
		f.declare(out)
	}
	return out, nil
}

// files parses the files of a package that are built here, but its tests.
func (s *sources) files(pkg string) ([]*sourceFile, error) {
	dir := filepath.Join(s.root, filepath.FromSlash(pkg))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []*sourceFile
	for _, e := range entries {
		if name := e.Name(); filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if ok, err := build.Default.MatchFile(dir, e.Name()); err != nil || !ok {
			continue
		}
		f := &sourceFile{path: filepath.Join(dir, e.Name()), rel: pkg + "/" + e.Name(), fset: token.NewFileSet()}
		text, err := os.ReadFile(f.path)
		if err != nil {
			return nil, err
		}
		f.text = string(text)
		if f.ast, err = parser.ParseFile(f.fset, f.path, text, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// declare notes what a file declares at its top level.
func (f *sourceFile) declare(out map[string]declaration) {
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil {
				continue
			}
			name := d.Name.Name
			if d.Recv != nil {
				name = typeName(d.Recv.List[0].Type) + "." + name
			}
			out[name] = declaration{file: f, fn: d, from: d.Body.Lbrace, to: d.Body.Rbrace + 1}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				decl := declaration{file: f, spec: spec, tok: d.Tok, from: spec.Pos(), to: spec.End()}
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						out[n.Name] = decl
					}
				case *ast.TypeSpec:
					out[spec.Name.Name] = decl
				}
			}
		}
	}
}

// typeName is the name of a receiver's type, without star and parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
