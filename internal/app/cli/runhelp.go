package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is a part of the flags in `ibwarden run --help`.
type flagGroup struct {
	title string
	flags []string
}

// runFlagGroups are the parts in their order. Every flag of run is in one.
var runFlagGroups = []flagGroup{
	{"The fabric", []string{"fabric", "guid", "m-key-file", "max-smps", "reads-per-second", "quarantine"}},
	{"Policy and protection", []string{"policy", "allow-both", "profile", "cables", "guard-period"}},
	{"Routing", []string{"routing", "lfts-file", "lmc"}},
	{"What is kept", []string{"data", "state", "secret-file", "store"}},
	{"Other managers", []string{"priority", "sm-key", "trusted-sm", "master-timeout", "lease", "take-over", "accept-policy"}},
	{"API and subnet administration", []string{"socket", "listen", "racks", "tls-cert", "tls-key", "tls-client-ca", "sa-key"}},
	{"Single sign-on", []string{"oidc-issuer", "oidc-client-id", "oidc-client-secret-file", "oidc-groups", "oidc-groups-claim", "oidc-scopes", "oidc-name", "oidc-ca-file", "oidc-console"}},
	{"Monitoring", []string{"sweep-interval", "drift-period", "metrics", "prometheus", "counters-period", "counters-hca", "counters-rcv-err-details", "webhook", "webhook-secret-file", "alertmanager"}},
	{"This run", []string{"config", "print-config", "once", "json", "read-only", "help"}},
}

// addRunHelp gives run a help that fits on two screens: what it does, and its flags by what they are about,
// a line each. The manual page has all of it.
func addRunHelp(c *cobra.Command) {
	c.SetHelpFunc(func(asked *cobra.Command, args []string) {
		if asked != c { // one below it
			c.Root().HelpFunc()(asked, args)
			return
		}
		fmt.Fprint(c.OutOrStdout(), runHelp(c))
	})
}

func runHelp(c *cobra.Command) string {
	var b strings.Builder
	c.InitDefaultHelpFlag()
	about, _, _ := strings.Cut(c.Long, runLongRest)
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n  %s FILE...\n\nExamples:\n%s\n", strings.TrimSpace(about), c.UseLine(), c.CommandPath()+" config check", c.Example)
	for _, g := range runFlagGroups {
		part := pflag.NewFlagSet("", pflag.ContinueOnError)
		part.SortFlags = false
		for _, name := range g.flags {
			short := *c.Flags().Lookup(name)
			short.Usage = summary(short.Usage)
			part.AddFlag(&short)
		}
		fmt.Fprintf(&b, "\n%s:\n%s", g.title, part.FlagUsages())
	}
	fmt.Fprintf(&b, "\nGlobal flags:\n%s\nman ibwarden-run has more on each flag, docs/configuration.md on the file of --config.\n", c.InheritedFlags().FlagUsages())
	return b.String()
}

// remarks are what the help of a flag says in parentheses, and after a semicolon.
var remarks = regexp.MustCompile(`(, as listed above)? ?\([^)]*\)|;.*`)

// summary is the help of a flag without its remarks.
func summary(usage string) string {
	return remarks.ReplaceAllString(usage, "")
}
