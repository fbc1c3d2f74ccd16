package policyfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// nestingMax is how deep lists and mappings may nest; a policy needs 6, a configuration 2.
const nestingMax = 16

// YAMLTree reads the parts of a YAML tree and notes what is wrong with them.
type YAMLTree struct {
	policy.SourceNotes
}

// Parse turns the text into the root of its tree, or notes why it cannot. Nothing in the
// text is noted as such where something is wanted; want may be empty, and then the root is
// nil without a fault.
func (t *YAMLTree) Parse(src, want string) (root ast.Node) {
	defer func() {
		// The parser is not ours: what it does with a hostile file must not
		// end the subnet manager.
		if cause := recover(); cause != nil {
			root = nil
			t.Fault(policy.Pos{}, "YAML", "text that stops the YAML parser (%v)", cause)
		}
	}()
	tokens := lexer.Tokenize(src)
	if at, deep := tooDeep(src, tokens); deep {
		t.Fault(at, fmt.Sprintf("at most %d levels", nestingMax), "lists or mappings too deep in one another")
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var at policy.Pos
		message := err.Error()
		if syntax := yaml.Error(nil); errors.As(err, &syntax) {
			at, message = tokenPos(syntax.GetToken()), syntax.GetMessage()
		}
		t.Fault(at, "YAML", "%s", message)
		return nil
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) > 1 {
		t.Fault(YAMLPos(bodies[1]), "one document in the file", "a second document")
		return nil
	}
	if len(bodies) == 0 {
		if want != "" {
			t.Fault(policy.Pos{}, want, "nothing in the file")
		}
		return nil
	}
	return bodies[0]
}

// tooDeep finds nesting past nestingMax before the parser, which recurses,
// sees it. Blocks nest by indentation, or by several dashes on one line.
func tooDeep(src string, tokens token.Tokens) (policy.Pos, bool) {
	number := 0
	for line := range strings.Lines(src) {
		number++
		if indent := len(line) - len(strings.TrimLeft(line, " ")); indent > 8*nestingMax && strings.TrimSpace(line) != "" {
			return policy.Pos{Line: number, Column: indent + 1}, true
		}
	}
	flow, dashes, line := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position.Line != line {
			line, dashes = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			dashes++
		}
		if flow > nestingMax || dashes > nestingMax {
			return tokenPos(tk), true
		}
	}
	return policy.Pos{}, false
}

func tokenPos(tk *token.Token) policy.Pos {
	if tk == nil || tk.Position == nil {
		return policy.Pos{}
	}
	return policy.Pos{Line: tk.Position.Line, Column: tk.Position.Column}
}

// YAMLPos is where a node begins; a mapping's own token is its first colon.
func YAMLPos(n ast.Node) policy.Pos {
	switch v := n.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return YAMLPos(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return YAMLPos(v.Key)
	}
	return tokenPos(n.GetToken())
}

// Describe tells what a node is, for messages.
func Describe(n ast.Node) string {
	switch v := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor or alias"
	case *ast.TagNode:
		return "a tag"
	case *ast.LiteralNode:
		return "a block of text"
	case ast.ScalarNode:
		return fmt.Sprintf("%q", v.GetToken().Value)
	}
	return "something else"
}

// Fields hands each value of a mapping to the reader of its key. It notes
// unknown and repeated keys, and whatever is no mapping. A reader for "" takes
// every key, and gets key and value.
func (t *YAMLTree) Fields(node ast.Node, what string, readers map[string]func(ast.Node)) {
	var pairs []*ast.MappingValueNode
	switch v := node.(type) {
	case *ast.MappingNode:
		pairs = v.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{v}
	default:
		t.Fault(YAMLPos(node), "a mapping", "%s for %s", Describe(node), what)
		return
	}
	want := policy.OrList(slices.Sorted(maps.Keys(readers)))
	if readers[""] != nil {
		want = "a name"
	}
	seen := map[string]policy.Pos{}
	for _, pair := range pairs {
		at := YAMLPos(pair.Key)
		key, ok := pair.Key.(*ast.StringNode)
		if !ok {
			t.Fault(at, want, "%s as a key of %s", Describe(pair.Key), what)
			continue
		}
		read, known := readers[key.Value]
		if !known && readers[""] != nil {
			read = func(value ast.Node) { readers[""](pair) }
			known = true
		}
		if first, again := seen[key.Value]; again {
			t.Fault(at, "each key once", "key %q of %s again, as at %v", key.Value, what, first)
			continue
		}
		seen[key.Value] = at
		if !known {
			t.Fault(at, want, "key %q of %s%s", key.Value, what, names.DidYouMean(key.Value, slices.Sorted(maps.Keys(readers))))
			continue
		}
		read(pair.Value)
	}
}

// List gives the items of a list.
func (t *YAMLTree) List(node ast.Node, what string) []ast.Node {
	if s, ok := node.(*ast.SequenceNode); ok {
		return s.Values
	}
	t.Fault(YAMLPos(node), "a list", "%s for %s", Describe(node), what)
	return nil
}

// Scalar gives the text of a single value.
func (t *YAMLTree) Scalar(node ast.Node, what, want string) (policy.SourceText, bool) {
	switch v := node.(type) {
	case *ast.StringNode:
		return policy.SourceText{S: v.Value, Pos: YAMLPos(v)}, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return policy.SourceText{S: v.GetToken().Value, Pos: YAMLPos(v)}, true
	}
	t.Fault(YAMLPos(node), want, "%s for %s", Describe(node), what)
	return policy.SourceText{}, false
}

// Choice reads one of some words.
func (t *YAMLTree) Choice(node ast.Node, what string, words []string) (string, bool) {
	word, ok := t.Scalar(node, what, policy.OrList(words))
	if ok && !slices.Contains(words, word.S) {
		t.Fault(word.Pos, policy.OrList(words), "%q for %s", word.S, what)
		ok = false
	}
	return word.S, ok
}

func (t *YAMLTree) Truth(node ast.Node, what string) bool {
	if b, ok := node.(*ast.BoolNode); ok {
		return b.Value
	}
	t.Fault(YAMLPos(node), "true or false", "%s for %s", Describe(node), what)
	return false
}

// Numeral reads a number between low and high; unlike in partitions.conf, a
// leading zero is refused, since people differ on what it means.
func (t *YAMLTree) Numeral(node ast.Node, what string, low, high uint64) uint64 {
	want := policy.NumberRange(low, high)
	digits, ok := t.Scalar(node, what, want)
	if !ok {
		return 0
	}
	v, octal, ok := policy.ParseNumber(digits.S)
	if !ok || octal || v < low || v > high {
		t.Fault(digits.Pos, want, "%q for %s", digits.S, what)
		return 0
	}
	return v
}
