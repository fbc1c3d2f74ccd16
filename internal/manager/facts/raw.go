package facts

import (
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// Raw is what a proof makes of raw packets under a profile and a policy.
func Raw(profile protect.Profile, p *policy.Policy) isolation.Raw {
	switch {
	case profile == protect.None:
		return isolation.RawIgnored
	case p.AllowRaw:
		return isolation.RawAllowed
	}
	return isolation.RawDenied
}
