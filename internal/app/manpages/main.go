// Command manpages writes a manual page for every command of ibwarden into a directory,
// from the help texts, and optionally the bash completion into a file.
// SOURCE_DATE_EPOCH is the date of the pages, so that the same sources give the same
// octets.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli"
)

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: manpages DIRECTORY [COMPLETION]")
		os.Exit(2)
	}
	err := write(os.Args[1])
	if err == nil && len(os.Args) == 3 {
		err = cli.Root().GenBashCompletionFileV2(os.Args[2], true)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manpages:", err)
		os.Exit(1)
	}
}

// write makes the pages: ibwarden.1, ibwarden-run.1, ibwarden-sim-exec.1, ...
func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.Root()
	root.DisableAutoGenTag = true
	prepare(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "ibwarden", Manual: "ibwarden"}, dir)
}

// escaped are the characters of help that Markdown would take for its own.
var escaped = strings.NewReplacer("_", `\_`, "*", `\*`, "<", `\<`, "`", "\\`")

// prepare turns the help of a command and of those below it into the Markdown that
// pages are made of: what is indented stands as it is.
func prepare(c *cobra.Command) {
	c.Short = escaped.Replace(c.Short)
	indented := false
	lines := strings.Split(c.Long, "\n")
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
			lines[i] = escaped.Replace(line)
			if was && line != "" {
				lines[i] = "\n" + lines[i]
			}
		}
	}
	c.Long = strings.Join(lines, "\n")
	for _, set := range []*pflag.FlagSet{c.LocalNonPersistentFlags(), c.PersistentFlags()} {
		set.VisitAll(func(f *pflag.Flag) { f.Usage = escaped.Replace(f.Usage) })
	}
	for _, sub := range c.Commands() {
		prepare(sub)
	}
}
