package archtest

import (
	"go/ast"
	"strings"
	"testing"
)

// Files that a command is told of are read through internal/app/files: a FIFO or a
// disk that does not answer must not keep it.
func TestFilesAreReadThroughRegular(t *testing.T) {
	looked := 0
	for _, s := range sources(t) {
		if s.pkg != "internal/app/daemon" && s.pkg != "internal/app/files" && s.pkg != "internal/app/cli" && !strings.HasPrefix(s.pkg, "internal/app/cli/") {
			continue
		}
		if s.path == "internal/app/cli/look/doctor_facts.go" || s.path == "internal/app/cli/look/doctor_pci.go" {
			continue // they read files of the kernel, below /sys, which answer
		}
		looked++
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if in, ok := f.X.(*ast.Ident); ok && in.Name == "os" && (f.Sel.Name == "ReadFile" || f.Sel.Name == "Open") && !opensDirectory(call) {
				t.Errorf("%s:%d: os.%s: want files.Read or files.Open", s.path, s.fset.Position(call.Pos()).Line, f.Sel.Name)
			}
			return true
		})
	}
	if looked < 20 {
		t.Errorf("%d files were looked at", looked)
	}
}

// opensDirectory: to sync it.
func opensDirectory(call *ast.CallExpr) bool {
	arg, ok := call.Args[0].(*ast.Ident)
	return ok && arg.Name == "dir"
}
