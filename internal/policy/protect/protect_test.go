package protect

import "testing"

func TestParse(t *testing.T) {
	for _, p := range []Profile{Basic, Tenant, Strict} {
		if got, err := Parse(p.String()); err != nil || got != p {
			t.Errorf("%v: %v, %v", p, got, err)
		}
	}
	for _, bad := range []string{"", "none", "Tenant", "strict "} {
		if got, err := Parse(bad); err == nil || got != None {
			t.Errorf("%q was taken for %v", bad, got)
		}
	}
	if got := Profile(9).String(); got != "invalid profile 9" {
		t.Error(got)
	}
}

func TestMKeyProtectBits(t *testing.T) {
	for p, want := range map[Profile]uint8{Basic: 1, Tenant: 2, Strict: 2} {
		if got := p.MKeyProtectBits(); got != want {
			t.Errorf("%v: %d, want %d", p, got, want)
		}
	}
}
