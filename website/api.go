package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ibwarden/ibwarden/internal/app/cli"
)

const schemasPath = "api-schemas.html"

// operation is one of the API.
type operation struct {
	method, path string
	*openapi3.Operation
}

// apiPages are the list of operations, a page for each group of them, and one of the schemas, from
// the description that the service gives of itself.
func apiPages(file string) ([]*page, error) {
	doc, err := openapi3.NewLoader().LoadFromFile(file)
	if err != nil {
		return nil, err
	}
	groups := map[string][]operation{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		methods := doc.Paths.Value(path).Operations()
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			op := methods[method]
			if len(op.Tags) != 1 {
				return nil, fmt.Errorf("%s: %s: %d tags, want one", file, op.OperationID, len(op.Tags))
			}
			groups[op.Tags[0]] = append(groups[op.Tags[0]], operation{method, path, op})
		}
	}
	list := &page{Path: "api-reference.html"}
	out := []*page{list}
	var b strings.Builder
	b.WriteString("# Operations of the API\n\nEvery request that the service answers below `/api/v1`, made from its description, [openapi.json](openapi.json). [The API of the service](api.html) says how to call it, and shows it.\n\n")
	for _, tag := range doc.Tags {
		ops := groups[tag.Name]
		delete(groups, tag.Name)
		p := &page{Path: "api-reference/" + anchor(tag.Name) + ".html"}
		fmt.Fprintf(&b, "## %s\n\n%s\n\n| request | what it does |\n|---|---|\n", tag.Name, sentence(tag.Description))
		for _, op := range ops {
			fmt.Fprintf(&b, "| [`%s %s`](%s#%s) | %s |\n", op.method, op.path, p.Path, op.OperationID, cell(op.Summary))
		}
		b.WriteString("\n")
		if err := p.take([]byte(groupText(tag, ops))); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	for tag := range groups {
		return nil, fmt.Errorf("%s: tag %s is not described", file, tag)
	}
	fmt.Fprintf(&b, "## Schemas\n\n[The objects](%s) that requests and answers consist of.\n", schemasPath)
	schemas := &page{Path: schemasPath}
	if err := schemas.take([]byte(schemasText(doc))); err != nil {
		return nil, err
	}
	return append(out, schemas), list.take([]byte(b.String()))
}

func sentence(s string) string {
	if s = cli.HelpLine(s); s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func groupText(tag *openapi3.Tag, ops []operation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# API: %s\n\n%s\n\n", tag.Name, sentence(tag.Description))
	for _, op := range ops {
		fmt.Fprintf(&b, "## %s\n\n%s.\n\n    %s %s\n\n", op.OperationID, cli.HelpLine(op.Summary), op.method, op.path)
		if op.Description != "" {
			b.WriteString(cli.HelpLine(op.Description) + "\n\n")
		}
		if len(op.Parameters) > 0 {
			b.WriteString("| parameter | in | type | meaning |\n|---|---|---|---|\n")
			for _, ref := range op.Parameters {
				p := ref.Value
				meaning := cell(p.Description)
				if p.Required {
					meaning = "(required) " + meaning
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, p.In, kind(p.Schema, 1), meaning)
			}
			b.WriteString("\n")
		}
		if op.RequestBody != nil {
			b.WriteString("The body: " + bodies(op.RequestBody.Value.Content) + ".\n\n")
		}
		b.WriteString("| answer | what | body |\n|---|---|---|\n")
		var problems []string
		for _, status := range slices.Sorted(maps.Keys(op.Responses.Map())) {
			r := op.Responses.Value(status)
			if r.Ref != "" {
				problems = append(problems, status)
				continue
			}
			headers := ""
			if names := slices.Sorted(maps.Keys(r.Value.Headers)); len(names) > 0 {
				headers = "; headers `" + strings.Join(names, "`, `") + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s%s |\n", status, cell(*r.Value.Description), bodies(r.Value.Content), headers)
		}
		if len(problems) > 0 {
			fmt.Fprintf(&b, "| %s | a problem | [Problem](../%s#problem) |\n", strings.Join(problems, ", "), schemasPath)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// bodies names the media types of a body with their schemas.
func bodies(content openapi3.Content) string {
	var out []string
	for _, media := range slices.Sorted(maps.Keys(content)) {
		said := kind(content[media].Schema, 1)
		if media != "application/json" {
			said = "`" + media + "` " + said
		}
		out = append(out, strings.TrimSpace(said))
	}
	return strings.Join(out, " or ")
}

// kind is a schema in a few words, with a link to that of an object. Depth is how many
// directories below the root the page is.
func kind(ref *openapi3.SchemaRef, depth int) string {
	if ref == nil {
		return ""
	}
	if name, ok := strings.CutPrefix(ref.Ref, "#/components/schemas/"); ok {
		return fmt.Sprintf("[%s](%s%s#%s)", name, strings.Repeat("../", depth), schemasPath, anchor(name))
	}
	s := ref.Value
	switch {
	case s.Items != nil:
		return "list of " + kind(s.Items, depth)
	case len(s.Enum) > 0:
		var words []string
		for _, w := range s.Enum {
			words = append(words, fmt.Sprintf("`%v`", w))
		}
		return strings.Join(words, ", ")
	case s.AdditionalProperties.Schema != nil:
		return "map to " + kind(s.AdditionalProperties.Schema, depth)
	}
	out := "any"
	if s.Type != nil {
		out = strings.Join(s.Type.Slice(), " or ")
	}
	if s.Format != "" {
		out += " (" + s.Format + ")"
	}
	if s.Pattern != "" {
		out += " like `" + strings.ReplaceAll(s.Pattern, "|", `\|`) + "`"
	}
	if s.Min != nil {
		out += fmt.Sprintf(", from %v", *s.Min)
	}
	if s.Max != nil {
		out += fmt.Sprintf(", to %v", *s.Max)
	}
	return out
}

func schemasText(doc *openapi3.T) string {
	var b strings.Builder
	b.WriteString("# Schemas of the API\n\nThe objects of requests and answers, made from [openapi.json](openapi.json). A field without *optional* is always there.\n\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name].Value
		fmt.Fprintf(&b, "## %s\n\n", name)
		if s.Description != "" {
			b.WriteString(sentence(s.Description) + "\n\n")
		}
		if len(s.Properties) == 0 {
			b.WriteString("It is " + kind(&openapi3.SchemaRef{Value: s}, 0) + ".\n\n")
			continue
		}
		b.WriteString("| field | type | meaning |\n|---|---|---|\n")
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			f := s.Properties[field]
			meaning := ""
			if f.Value != nil {
				meaning = cell(f.Value.Description)
			}
			if !slices.Contains(s.Required, field) {
				meaning = strings.TrimSpace("*optional* " + meaning)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", field, kind(f, 0), meaning)
		}
		b.WriteString("\n")
	}
	return b.String()
}
