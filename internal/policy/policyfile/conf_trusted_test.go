package policyfile

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/policy"
)

// TestTrustIsNotLost: a policy that trusts ports is not written as one that trusts
// none.
func TestTrustIsNotLost(t *testing.T) {
	p := &policy.Policy{Default: policy.Limited, Trusted: []policy.TrustedPorts{{Selector: policy.Selector{Kind: policy.SelectPort, GUID: 0x11}}}}
	if _, err := WriteConf(p, "p"); err == nil || !strings.Contains(err.Error(), "trusted") {
		t.Errorf("it was written: %v", err)
	}
}
