package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli"
)

func commandPath(c *cobra.Command) string { return "commands/" + cli.HelpPage(c) + ".html" }

// commandPages are the list of commands, and a page for each, from their help.
func commandPages() ([]*page, error) {
	root := cli.Root()
	root.InitDefaultHelpCmd()
	list := &page{Path: "commands.html"}
	out := []*page{list}
	var b strings.Builder
	b.WriteString("# Commands\n\nEach command with its flags and examples, as `ibwarden COMMAND --help` and the manual pages have them.\n\n| command | what it does |\n|---|---|\n")
	for _, c := range cli.HelpCommands(root) {
		fmt.Fprintf(&b, "| [%s](%s) | %s |\n", c.CommandPath(), commandPath(c), cell(c.Short))
		p := &page{Path: commandPath(c)}
		if err := p.take([]byte(commandText(c))); err != nil {
			return nil, err
		}
		p.Summary = c.Short
		out = append(out, p)
	}
	return out, list.take([]byte(b.String()))
}

// cell is a line of help as the cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(cli.HelpLine(text), "|", `\|`), "\n", " ")
}

func commandText(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", c.CommandPath(), cli.HelpLine(c.Short))
	if c.Runnable() {
		fmt.Fprintf(&b, "    %s\n\n", c.UseLine())
	}
	if c.Long != "" {
		// Cobra's own help of completion has headings, of the fourth level.
		b.WriteString(strings.ReplaceAll(cli.HelpLong(c.Long), "\n#### ", "\n## ") + "\n\n")
	}
	if c.Example != "" {
		b.WriteString("## Examples\n\n```\n" + strings.TrimRight(c.Example, "\n") + "\n```\n\n")
	}
	var subs []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			subs = append(subs, sub)
		}
	}
	if len(subs) > 0 {
		b.WriteString("## Commands below it\n\n| command | what it does |\n|---|---|\n")
		for _, sub := range subs {
			fmt.Fprintf(&b, "| [%s](%s) | %s |\n", sub.CommandPath(), relative(commandPath(c), commandPath(sub)), cell(sub.Short))
		}
		b.WriteString("\n")
	}
	flagTable(&b, "## Flags", c.NonInheritedFlags())
	flagTable(&b, "## Flags of all commands", c.InheritedFlags())
	if c.HasParent() {
		fmt.Fprintf(&b, "See also [%s](%s), and [all commands](../commands.html).\n", c.Parent().CommandPath(), relative(commandPath(c), commandPath(c.Parent())))
	}
	return b.String()
}

func flagTable(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(title + "\n\n| flag | default | meaning |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		initial := ""
		if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" {
			initial = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, initial, cell(usage))
	})
	b.WriteString("\n")
}
