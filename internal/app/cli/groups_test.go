package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// TestGroupsOfHelp: every command of the top level is in one group, but for those that every
// program has, and every group has commands that there are.
func TestGroupsOfHelp(t *testing.T) {
	group := map[string]string{}
	for _, g := range commandGroups {
		if !slices.IsSorted(g.commands) {
			t.Errorf("%s: %v is not in the order of the alphabet", g.title, g.commands)
		}
		for _, name := range g.commands {
			if group[name] != "" {
				t.Errorf("%s is in two groups, %s and %s", name, group[name], g.id)
			}
			group[name] = g.id
		}
	}
	for _, c := range Root().Commands() {
		switch name := c.Name(); {
		case c.Hidden || c.Deprecated != "":
		case slices.Contains([]string{"completion", "help", "version"}, name):
			if c.GroupID != "" {
				t.Errorf("%s is in group %q: want none", name, c.GroupID)
			}
		case c.GroupID == "" || c.GroupID != group[name]:
			t.Errorf("%s is in group %q, want %q, one of commandGroups", name, c.GroupID, group[name])
		}
		delete(group, c.Name())
	}
	if len(group) > 0 {
		t.Errorf("groups have %v, which are no commands", group)
	}
}

// TestHelpHasGroups: the help has the groups in their order, and the additional commands last.
func TestHelpHasGroups(t *testing.T) {
	var out, errs bytes.Buffer
	if status := Main([]string{"--help"}, &out, &errs); status != terminal.ExitGood || errs.Len() > 0 {
		t.Fatalf("status %d, %s", status, errs.String())
	}
	rest := out.String()
	for _, title := range []string{"\nLook:\n", "\nChange:\n", "\nOperate:\n", "\nTenants:\n", "\nLab:\n", "\nAdditional Commands:\n  completion "} {
		_, after, found := strings.Cut(rest, title)
		if !found {
			t.Fatalf("no %q after those before it in:\n%s", title, out.String())
		}
		rest = after
	}
}
