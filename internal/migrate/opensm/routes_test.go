package opensm

import "testing"

// TestRoutesFromFile: the engine file counts wherever it stands in the chain, and nothing that
// is only called like it.
func TestRoutesFromFile(t *testing.T) {
	for chain, want := range map[string]bool{
		"file": true, "updn,file": true, "file,updn": true, "updn, minhop\tfile": true, "updn file": true,
		"": false, "updn": false, "files": false, "updn,minhop": false, "profile": false, "FILE": false, "(null)": false,
	} {
		c, err := ReadConf(Text{Path: "opensm.conf", Data: []byte("routing_engine " + chain + "\n")})
		if err != nil {
			t.Fatalf("%s: %v", chain, err)
		}
		if got := routesFromFile(c); got != want {
			t.Errorf("%q: routes from a file %v, want %v", chain, got, want)
		}
	}
}
