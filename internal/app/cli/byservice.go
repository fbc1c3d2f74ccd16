package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
)

// planByService has a running service plan the policy.
func (f *changeFlags) planByService(c *cobra.Command) error {
	file, err := f.file()
	if err != nil {
		return err
	}
	return f.server.Plan(c, file, f.json)
}

// file is the policy file as a service takes it.
func (f *changeFlags) file() (api.PolicyFile, error) {
	text, err := readBounded(f.policy)
	return api.PolicyFile{Name: f.policy, Text: string(text), AllowBoth: f.policyOptions.AllowBoth}, orMisuse(err)
}

// applyByService has a running service apply the policy, and waits until it is proved.
func (f *applyFlags) applyByService(c *cobra.Command) error {
	for _, name := range []string{"resume", "rollback", "batch", "canary", "journal", "state", "lmc", "routing", "cables"} {
		if c.Flags().Changed(name) {
			return misuse(fmt.Errorf("--%s and a service: the service does this by itself (ibwarden rollback undoes a revision); to do without it, give --fabric", name))
		}
	}
	file, err := f.file()
	if err == nil && !f.yes {
		if err = f.server.Plan(c, file, false); err == nil {
			err = ask(c.Context(), c.InOrStdin(), c.ErrOrStderr())
		}
	}
	if err != nil {
		return err
	}
	proved, err := f.server.Apply(c, file, f.json)
	if err == nil && !proved {
		return bad(errNotProved)
	}
	return err
}
