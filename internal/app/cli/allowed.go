package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

// policyFlags are the flags that name a policy to judge by.
type policyFlags struct {
	file, state string
	options     policyfile.Options
	loaded      *policy.Policy
	assigned    desired.Assigned
	// inForce takes the policy as one in force, which goes on without the ports that its
	// names do not find; absent are those names, once it was resolved.
	inForce bool
	absent  []policy.Absent
}

func (p *policyFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&p.file, "policy", "", "policy file: partitions.conf or YAML")
	c.Flags().BoolVar(&p.options.AllowBoth, "allow-both", false, allowBothHelp)
	c.Flags().StringVar(&p.state, "state", "", "the manager's state file, for the P_Keys of partitions to which the policy gives none")
}

// load reads the files; loaded stays nil without a policy.
func (p *policyFlags) load(c *cobra.Command) (err error) {
	if p.file == "" {
		return nil
	}
	if p.state != "" {
		if p.assigned, err = files.LoadState(p.state); err != nil {
			return misuse(err)
		}
	}
	p.loaded, _, err = run.ReadPolicy(p.file, p.options, c.ErrOrStderr())
	return err
}

// on is what the policy allows on a fabric. A port whose GUID another device claims too
// gets what an unknown port gets. Names that are nobody's are misuse, as for plan; where not
// even the port to read from answered, nothing is known of them.
func (p *policyFlags) on(w io.Writer, f *observed.Fabric) ([]observed.Partition, error) {
	master := f.Manager()
	var ports []policy.EndPort
	for _, port := range f.EndPorts() {
		if !port.Node.Contested {
			ports = append(ports, facts.Identity(port, port == master))
		}
	}
	names, in := facts.PolicyNames{Known: p.assigned.Names}, desired.Input{Fabric: f}
	if f.Self == nil || p.inForce {
		names.Accept(p.loaded)
	}
	r, err := desired.Resolve(p.loaded, names.Resolver(ports), &names, p.assigned.PKeys, in.Site)
	if err != nil {
		return nil, misuse(err)
	}
	p.absent = r.Resolution.Absent
	run.Warn(w, p.file, r.Resolution.Warnings)
	return r.Resolution.Partitions, nil
}

// audited is what an audit asks of the policy.
func (p *policyFlags) audited(w io.Writer, f *observed.Fabric) (list []observed.Partition, aliases map[ib.PortGUID][]ib.PortGUID, some bool, err error) {
	if p.loaded == nil {
		return nil, nil, false, nil
	}
	list, err = p.on(w, f)
	return list, p.loaded.AliasesByPort(), true, err
}
