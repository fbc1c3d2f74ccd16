package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// point is a place where the code can be broken by its syntax alone.
type point struct {
	file     *sourceFile
	from, to token.Pos
	text     string // what comes instead
	what     string
}

// String is the place and what breaks there, on one line.
func (p point) String() string {
	was := strings.Join(strings.Fields(p.file.at(p.from, p.to)), " ")
	if r := []rune(was); len(r) > mostShown {
		was = string(r[:mostShown]) + "..."
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.file.rel, p.file.line(p.from), p.what, was)
}

// mostShown is how many characters of broken code are shown.
const mostShown = 80

// points are the places of a file, in its order. What is broken stays in the text behind a
// condition that never holds, so that names and imports stay in use.
func (f *sourceFile) points() []point {
	var out []point
	add := func(n ast.Node, what, text string) {
		out = append(out, point{f, n.Pos(), n.End(), text, what})
	}
	text := func(n ast.Node) string { return f.at(n.Pos(), n.End()) }
	var results *ast.FieldList // of the function around
	ast.PreorderStack(f.ast, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR
		case *ast.IfStmt:
			add(n.Cond, "condition negated", "!("+text(n.Cond)+")")
			if n.Else == nil && leaves(n.Body) {
				add(n.Cond, "early return dropped", "false && ("+text(n.Cond)+")")
			}
			for _, s := range n.Body.List {
				if droppable(s) {
					add(s, "statement dropped", "if false { "+text(s)+" }")
				}
			}
		case *ast.BinaryExpr:
			f.operators(n, add)
		case *ast.ReturnStmt:
			if results = resultsOf(stack); len(n.Results) == 0 || results == nil || len(n.Results) != results.NumFields() {
				break
			}
			last := n.Results[len(n.Results)-1]
			if is(results.List[len(results.List)-1].Type, "error") && !is(last, "nil") {
				add(last, "nil returned for an error", "func() error { _ = error("+text(last)+"); return nil }()")
			}
			for _, r := range n.Results {
				if is(r, "true") {
					add(r, "false returned", "false")
				} else if is(r, "false") {
					add(r, "true returned", "true")
				}
			}
		}
		return true
	})
	return out
}

// swapped is what takes the place of an operator.
var swapped = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
}

// operators adds the breaks of one operator.
func (f *sourceFile) operators(n *ast.BinaryExpr, add func(ast.Node, string, string)) {
	x, y := f.at(n.X.Pos(), n.X.End()), f.at(n.Y.Pos(), n.Y.End())
	switch n.Op {
	case token.LAND, token.LOR:
		neutral := strconv.FormatBool(n.Op == token.LAND)
		operand := func(s string) string {
			if n.Op == token.LAND {
				return "(" + neutral + " || (" + s + "))"
			}
			return "(" + neutral + " && (" + s + "))"
		}
		add(n.X, "operand of "+n.Op.String()+" dropped", operand(x))
		add(n.Y, "operand of "+n.Op.String()+" dropped", operand(y))
	case token.ADD, token.SUB:
		if lit, ok := n.Y.(*ast.BasicLit); ok && lit.Kind == token.INT {
			add(n, n.Op.String()+lit.Value+" dropped", "("+x+")")
		}
	default:
		if to := swapped[n.Op]; to != "" {
			add(n, n.Op.String()+" made "+to, x+" "+to+" "+y)
		}
	}
}

// leaves reports whether a block is a guard: it ends with a return, or goes on elsewhere.
func leaves(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	switch b.List[len(b.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// droppable reports whether a statement can be left out: an assignment, a count or a call,
// but of a logger.
func droppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.IncDecStmt:
		return true
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			switch sel.Sel.Name {
			case "Debug", "Info", "Warn", "Error", "Log":
				return false
			}
		}
		return true
	}
	return false
}

// resultsOf are the results of the function that the nodes of a stack end in.
func resultsOf(stack []ast.Node) *ast.FieldList {
	for i := len(stack) - 1; i >= 0; i-- {
		switch fn := stack[i].(type) {
		case *ast.FuncDecl:
			return fn.Type.Results
		case *ast.FuncLit:
			return fn.Type.Results
		}
	}
	return nil
}

// is reports whether an expression is a name.
func is(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
