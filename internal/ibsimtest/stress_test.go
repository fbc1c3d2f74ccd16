package ibsimtest
import "testing"
func TestStress(t *testing.T) {
	r := newRig(t, topologyOf(t, badPolicyFabric), "")
	for i := range 100 { r.read(false); _ = i }
}
