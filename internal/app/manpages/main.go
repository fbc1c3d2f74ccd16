// Command manpages writes a manual page for every command of ibwarden into a directory,
// from the help texts, and optionally the bash completion into a file.
// SOURCE_DATE_EPOCH is the date of the pages, so that the same sources give the same
// octets.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/ibwarden/ibwarden/internal/app/cli"
	"github.com/ibwarden/ibwarden/internal/app/helptext"
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
	helptext.Prepare(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "ibwarden", Manual: "ibwarden"}, dir)
}
