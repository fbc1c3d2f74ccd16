package desired

import (
	"errors"

	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Predict computes what a manager that starts on a fabric just read would want
// under a policy. in has no policy, and its fences are those from
// before the fabric was read. An error means that the manager would refuse the policy,
// or the fabric.
func Predict(in Input, p *policy.Policy) (*Result, error) {
	if in.Fabric.Self == nil {
		return nil, errors.New("the port to work from did not answer")
	}
	in.Known.Recall(in.Fabric)
	fences := facts.FenceEdit{Fabric: in.Fabric, Cables: in.Cables, Set: in.Known.Fences}
	fences.HoldToList()
	in.Known.Fences = fences.Set
	names := facts.PolicyNames{Known: in.Known.Names}
	var err error
	if in.Resolved, err = Resolve(p, names.Resolver(in.Identities()), &names, in.Known.PKeys, in.Site); err != nil {
		return nil, err
	}
	r, err := Compute(in)
	if err != nil {
		return nil, err
	}
	r.Assigned.Names = names.All()
	return r, nil
}
