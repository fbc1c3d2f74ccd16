// Package helptext makes Markdown of the help of commands, for manual pages and for the site.
package helptext

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// escaped are the characters of help that Markdown would take for its own.
var escaped = strings.NewReplacer("_", `\_`, "*", `\*`, "<", `\<`, "`", "\\`")

// Line is a line of help as Markdown: its characters stand for themselves.
func Line(text string) string { return escaped.Replace(text) }

// Long is the long text of a command as Markdown: paragraphs, and what is indented stands as
// it is.
func Long(text string) string {
	indented := false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch was := indented; {
		case strings.HasPrefix(line, "  ") || was && strings.HasPrefix(line, "\t"):
			indented = true
			lines[i] = "    " + line
			if !was {
				lines[i] = "\n" + lines[i]
			}
		default:
			indented = false
			lines[i] = Line(line)
			if was && line != "" {
				lines[i] = "\n" + lines[i]
			}
		}
	}
	return strings.Join(lines, "\n")
}

// Prepare turns the help of a command and of those below it into Markdown.
func Prepare(c *cobra.Command) {
	c.Short, c.Long = Line(c.Short), Long(c.Long)
	for _, set := range []*pflag.FlagSet{c.LocalNonPersistentFlags(), c.PersistentFlags()} {
		set.VisitAll(func(f *pflag.Flag) { f.Usage = Line(f.Usage) })
	}
	for _, sub := range c.Commands() {
		Prepare(sub)
	}
}

// Commands are a command and those below it that have a page of their own, parents first.
func Commands(c *cobra.Command) (out []*cobra.Command) {
	if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
		out = append(out, c)
	}
	for _, sub := range c.Commands() {
		out = append(out, Commands(sub)...)
	}
	return out
}

// Page is the name of the page of a command without its ending: ibwarden-sim-exec.
func Page(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }
