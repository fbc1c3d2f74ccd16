// This file makes Markdown of the help of commands, for manual pages and for the site.

package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// escaped are the characters of help that Markdown would take for its own.
var escaped = strings.NewReplacer("_", `\_`, "*", `\*`, "<", `\<`, "`", "\\`")

// HelpLine is a line of help as Markdown: its characters stand for themselves.
func HelpLine(text string) string { return escaped.Replace(text) }

// HelpLong is the long text of a command as Markdown: paragraphs, and what is indented stands as
// it is.
func HelpLong(text string) string {
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
			lines[i] = HelpLine(line)
			if was && line != "" {
				lines[i] = "\n" + lines[i]
			}
		}
	}
	return strings.Join(lines, "\n")
}

// PrepareHelp turns the help of a command and of those below it into Markdown.
func PrepareHelp(c *cobra.Command) {
	c.Short, c.Long = HelpLine(c.Short), HelpLong(c.Long)
	for _, set := range []*pflag.FlagSet{c.LocalNonPersistentFlags(), c.PersistentFlags()} {
		set.VisitAll(func(f *pflag.Flag) { f.Usage = HelpLine(f.Usage) })
	}
	for _, sub := range c.Commands() {
		PrepareHelp(sub)
	}
}

// HelpCommands are a command and those below it that have a page of their own, parents first: not
// old names, and nothing below one.
func HelpCommands(c *cobra.Command) (out []*cobra.Command) {
	if c.Hidden {
		return nil
	}
	if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
		out = append(out, c)
	}
	for _, sub := range c.Commands() {
		out = append(out, HelpCommands(sub)...)
	}
	return out
}

// HelpPage is the name of the page of a command without its ending: ibwarden-sim-exec.
func HelpPage(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }
