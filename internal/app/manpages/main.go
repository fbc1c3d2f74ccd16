// Command manpages writes a manual page for every command of ibwarden into a directory,
// from the help texts, and optionally the completions for bash, zsh and fish into another.
// SOURCE_DATE_EPOCH is the date of the pages, so that the same sources give the same
// bytes.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/ibwarden/ibwarden/internal/app/cli"
)

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: manpages DIRECTORY [COMPLETIONS]")
		os.Exit(2)
	}
	err := write(os.Args[1])
	if err == nil && len(os.Args) == 3 {
		err = completions(os.Args[2])
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
	cli.PrepareHelp(root)
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "ibwarden", Manual: "ibwarden"}, dir); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		return err
	}
	at, err := date()
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		if err := os.WriteFile(page, asManDoc(text, at), 0o644); err != nil {
			return err
		}
	}
	return nil
}

var (
	// heading is the first line of a page, whose date has no day.
	heading = regexp.MustCompile(`(?m)^(\.TH "[^"]*" "1") "[^"]*"`)
	// option is a flag and what it does, as a paragraph and a line that begins with a tab.
	option = regexp.MustCompile(`(?m)^\.(?:PP|SH (.*))\n(\\fB.*)\n\t(.*)\n\n?`)
)

// asManDoc writes options as paragraphs with a tag, and the date as mandoc and groff know
// it.
func asManDoc(page []byte, date string) []byte {
	page = heading.ReplaceAll(page, []byte(`$1 "`+date+`"`))
	return option.ReplaceAllFunc(page, func(found []byte) []byte {
		part := option.FindSubmatch(found)
		var out []byte
		if len(part[1]) > 0 {
			out = fmt.Appendf(out, ".SH %s\n", part[1])
		}
		return fmt.Appendf(out, ".TP\n%s\n%s\n", part[2], part[3])
	})
}

// date is that of the pages: SOURCE_DATE_EPOCH, or today.
func date() (string, error) {
	at := time.Now()
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return "", fmt.Errorf("SOURCE_DATE_EPOCH=%q: want seconds since 1970", epoch)
		}
		at = time.Unix(seconds, 0)
	}
	return at.UTC().Format(time.DateOnly), nil
}

// completions writes ibwarden.bash, _ibwarden for zsh and ibwarden.fish.
func completions(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.Root()
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(dir, "ibwarden.bash"), true),
		root.GenZshCompletionFile(filepath.Join(dir, "_ibwarden")),
		root.GenFishCompletionFile(filepath.Join(dir, "ibwarden.fish"), true))
}
