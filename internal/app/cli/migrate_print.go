package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/migrate/opensm"
)

// printReport prints a report for people.
func printReport(w io.Writer, d *Document, writes bool) error {
	p := &printer{w: w}
	file := ""
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.File != file {
			file = l.File
			p.say("%s", file)
		}
		where := fmt.Sprint(l.First)
		if l.Last != l.First {
			where += fmt.Sprintf("-%d", l.Last)
		}
		text := fmt.Sprintf("%9s  %-12s  %s", where, l.Verdict, l.What)
		if l.Becomes != "" {
			text += " -> " + l.Becomes
		}
		p.say("%s", text)
		if l.Why != "" {
			p.say("%25s%s", "", l.Why)
		}
	}
	p.say("%s taken, %d not needed, %d not possible", terminal.Count(d.Count(opensm.Taken), "line"), d.Count(opensm.NotNeeded), d.Count(opensm.NotPossible))
	p.say("left at OpenSM's default: %s; where ibwarden's default differs:", terminal.Count(d.AtDefault, "option"))
	for _, x := range d.Defaults {
		p.say("  %s %s: %s", x.Option, x.Value, x.Why)
	}
	p.say("what its devices will hold differs from OpenSM:")
	for _, text := range d.Announced {
		p.say("  %s", text)
	}
	p.say("configuration (%s):", configFile)
	for _, s := range d.Configuration {
		p.say("  %s: %s", s.Key, s.Shown)
	}
	p.say("policy (%s): %s", policyFile, terminal.Count(len(d.Policy.Partitions), "partition"))
	if d.Takeover != nil && p.err == nil {
		p.err = d.Takeover.print(w, writes)
	}
	if len(d.Written) == 0 {
		p.say("nothing was written: --output DIR writes %s and %s", configFile, policyFile)
	}
	for _, path := range d.Written {
		p.say("written: %s", path)
	}
	return p.err
}

// printer prints lines; the first error stays.
type printer struct {
	w   io.Writer
	err error
}

// say prints a line, in which nothing steers a terminal.
func (p *printer) say(format string, args ...any) {
	if p.err == nil {
		line := fmt.Sprintf(format, args...)
		lead := line[:len(line)-len(strings.TrimLeft(line, " "))]
		_, p.err = fmt.Fprintln(p.w, lead+terminal.Plain(line[len(lead):]))
	}
}
