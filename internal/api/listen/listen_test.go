package listen

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// TestConnectionsAreCounted: one peer does not have them all, and the provider finds a
// place when everybody else has none.
func TestConnectionsAreCounted(t *testing.T) {
	c := &counter{peers: map[string]int{}}
	for range ConnectionsPerPeer {
		if !c.enter("uid 1", false) {
			t.Fatal("refused before the limit")
		}
	}
	if c.enter("uid 1", false) {
		t.Error("a peer has more than its share")
	}
	for i := 0; c.all < ConnectionsMax-ConnectionsReserved; i++ {
		if !c.enter(fmt.Sprint("peer ", i), false) {
			t.Fatal("refused before the limit")
		}
	}
	if c.enter("uid 2", false) {
		t.Error("others have what is reserved")
	}
	for range ConnectionsReserved {
		if !c.enter("uid 0", true) {
			t.Fatal("the provider is refused")
		}
	}
	if c.enter("uid 0", true) {
		t.Error("more than there are")
	}
	if c.refused != 2 || c.refusedPeer != 1 {
		t.Errorf("%d and %d refusals are counted, want 2 and 1", c.refused, c.refusedPeer)
	}
	c.leave("uid 1")
	if c.all != ConnectionsMax-1 || c.peers["uid 1"] != ConnectionsPerPeer-1 {
		t.Errorf("%d connections, %d of uid 1", c.all, c.peers["uid 1"])
	}
}

// TestURL: a browser is told a name that the certificate has, and an address without one.
func TestURL(t *testing.T) {
	for _, x := range []struct {
		listen string
		names  []string
		ips    []net.IP
		want   string
	}{
		{listen: "127.0.0.1:0", want: "http://127.0.0.1"},
		{listen: "[::1]:0", want: "http://[::1]"},
		{listen: "127.0.0.1:0", names: []string{"fabric.example"}, ips: []net.IP{net.IPv4(127, 0, 0, 1)}, want: "https://127.0.0.1"},
		{listen: "127.0.0.1:0", names: []string{"*.example", "fabric.example"}, want: "https://fabric.example"},
		{listen: "0.0.0.0:0", names: []string{"fabric.example"}, want: "https://fabric.example"},
		{listen: "0.0.0.0:0", ips: []net.IP{net.IPv4(10, 0, 0, 9)}, want: "https://10.0.0.9"},
		{listen: "127.0.0.1:0", names: []string{"*.example"}, want: "https://127.0.0.1"},
	} {
		w := Where{Listen: x.listen}
		if strings.HasPrefix(x.want, "https") {
			w.Certificate, w.Key = certificate(t, x.names, x.ips)
		}
		l, err := Listen(w)
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.All()[0].Addr().String())
		if want := x.want + ":" + port; l.URL != want {
			t.Errorf("%s with %v and %v: %s, want %s", x.listen, x.names, x.ips, l.URL, want)
		}
		l.Close()
	}
	if l, err := Listen(Where{}); err != nil || l.URL != "" {
		t.Errorf("%q, %v: want none", l.URL, err)
	}
}

func certificate(t *testing.T, names []string, ips []net.IP) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: names, IPAddresses: ips}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b})
}
