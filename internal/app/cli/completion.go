// completion*.go: provides the shell completion of flag values and arguments: words,
// and names from this machine, the policy or the fabric of the command line, which is
// only read. Add registers them for a command and its subcommands. cobra completes the
// names of commands and flags.

package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
)

// words are the values of flags that have few, for shells to complete.
var words = map[string][]string{
	"routing":    routing.Engines(),
	"criteria":   audit.CriteriaNames(),
	"fail-on":    {"low", "medium", "high", "critical"},
	"profile":    {"basic", "tenant", "strict"},
	"service":    {"UD", "RC", "UC", "RD", "raw"},
	"pace":       {"fast", "real"},
	"format":     {"ibdiagnet", "opensm"},
	"log-format": {"text", "json"},
	"log-level":  {"debug", "info", "warn", "error"},
}

// CompletionWords are the values of a flag that has few; nil for any other.
func CompletionWords(flag string) []string { return words[flag] }

// function finds what a flag or an argument may be.
type function = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// completionFlags are functions for completionFlags whose values stand in a fabric, a policy, a running
// service or this machine.
var completionFlags = map[string]function{
	"fabric":     fabrics,
	"guid":       portGUIDs,
	"manager":    portGUIDs,
	"trusted-sm": portGUIDs,
	"port":       portGUIDs,
	"canary":     groups,
	"node":       simulatedNodes,
	"socket":     sockets,
	"tenant":     tenants,
	"owner":      tenants,
	"to":         standbys,
}

// flagsOf are functions for flags that mean something else in one command than in
// others, by the path of the command and the flag.
var flagsOf = map[string]function{
	"ibwarden show shadow --since":           cobra.FixedCompletions([]string{"1d", "7d", "30d"}, cobra.ShellCompDirectiveNoFileComp),
	"ibwarden port list --node":              cobra.NoFileCompletions, // descriptions have blanks
	"ibwarden partition member list --state": cobra.FixedCompletions([]string{"member", "waiting"}, cobra.ShellCompDirectiveNoFileComp),
}

// arguments are functions for the arguments of commands, by their paths.
var arguments = map[string]function{
	"ibwarden trace":           upTo(2, hosts),
	"ibwarden why":             upTo(2, hosts),
	"ibwarden show reach":      upTo(1, hosts),
	"ibwarden device get":      deviceAndAttribute,
	"ibwarden device set":      deviceAndAttribute,
	"ibwarden device led on":   upTo(1, devices),
	"ibwarden device led off":  upTo(1, devices),
	"ibwarden device led show": upTo(1, devices),
	"ibwarden topology accept": switchPorts,
	"ibwarden sim":             upTo(1, topologies),

	"ibwarden tenant show":             upTo(1, tenants),
	"ibwarden tenant set":              upTo(1, tenants),
	"ibwarden tenant delete":           upTo(1, tenants),
	"ibwarden partition show":          upTo(1, partitions),
	"ibwarden partition set":           upTo(1, partitions),
	"ibwarden partition delete":        upTo(1, partitions),
	"ibwarden partition member list":   upTo(1, partitions),
	"ibwarden partition member add":    joining,
	"ibwarden partition member set":    joining,
	"ibwarden partition member remove": members,
	"ibwarden partition member refuse": upTo(2, members),
	"ibwarden port show":               upTo(1, ports),
	"ibwarden port assign":             ports,
	"ibwarden port move":               ports,
	"ibwarden port offer":              ports,
	"ibwarden port release":            ports,
	"ibwarden port pool release":       upTo(1, pools),
	"ibwarden tenant token delete":     upTo(1, tokens),
	"ibwarden approval approve":        upTo(1, approvals),
	"ibwarden approval reject":         upTo(1, approvals),
	"ibwarden history show":            upTo(1, revisions),
	"ibwarden rollback":                upTo(1, revisions),
}

// AddCompletion tells shells the words of flags and arguments, of a command and of those below
// it.
func AddCompletion(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		f := flagsOf[c.CommandPath()+" --"+flag.Name]
		if f == nil {
			f = completionFlags[flag.Name]
		}
		if list := words[flag.Name]; f == nil && list != nil {
			f = cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
		}
		if f != nil {
			// An error would mean that it is there twice.
			_ = c.RegisterFlagCompletionFunc(flag.Name, f)
		}
	})
	if f := arguments[c.CommandPath()]; f != nil {
		c.ValidArgsFunction = f
	}
	for _, sub := range c.Commands() {
		AddCompletion(sub)
	}
}

// upTo completes the first n arguments.
func upTo(n int, f function) function {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(c, args, begun)
	}
}

// deviceAndAttribute completes a device, then an attribute of it; for set one with counters, and
// then these.
func deviceAndAttribute(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	sets := c.Name() == "set"
	switch {
	case len(args) == 0:
		return devices(c, args, begun)
	case len(args) == 1:
		var out []string
		for _, k := range look.Kinds() {
			if (!sets || k.Resettable() != nil) && strings.HasPrefix(strings.ToLower(k.Name), strings.ToLower(begun)) {
				out = append(out, k.Name)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	case sets:
		if k, err := look.FindAttribute(args[1]); err == nil {
			var out []string
			for _, name := range append(k.Resettable(), "all") {
				out = append(out, name+"=0")
			}
			return beginning(out, begun), cobra.ShellCompDirectiveNoFileComp
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// beginning are the words that begin with what was typed.
func beginning(list []string, begun string) (out []string) {
	for _, w := range list {
		if strings.HasPrefix(w, begun) {
			out = append(out, w)
		}
	}
	return out
}
