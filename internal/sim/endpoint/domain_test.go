package endpoint_test

import (
	"errors"
	"testing"

	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// TestDomains: two programs of one host have a domain each. Who guesses an R_Key
// or the number of a queue pair reaches what belongs to the domain that he is
// connected with, and nothing of the other.
func TestDomains(t *testing.T) {
	n := newNet(t)
	a, b := n.node(counters, newPort(1, 0xFFFF)), n.node(counters, newPort(2, 0xFFFF))
	for _, tt := range []struct {
		name    string
		queue   endpoint.Domain
		memory  endpoint.Domain
		reached bool
	}{{"own", 1, 1, true}, {"other", 1, 2, false}, {"nobody's", 1, 0, false}, {"none", 0, 0, true}} {
		t.Run(tt.name, func(t *testing.T) {
			from := a.create(endpoint.RC, 0)
			to, err := b.CreateQP(endpoint.Application, endpoint.QPConfig{Service: endpoint.RC, Domain: tt.queue})
			must(t, err)
			connect(t, from, to, a, b, 1, 0, 0)
			memory := []byte("****")
			region, err := b.RegisterMemoryIn(tt.memory, memory, 100, endpoint.AccessRemoteWrite)
			must(t, err)
			must(t, from.PostSend(endpoint.SendRequest{Op: endpoint.OpWrite, Data: []byte("here"), RemoteAddress: 100, RKey: region.RKey()}))
			n.carry()
			if got := string(memory) == "here"; got != tt.reached {
				t.Errorf("memory of domain %d by a queue pair of %d: %q", tt.memory, tt.queue, memory)
			}
			want := endpoint.Success
			if !tt.reached {
				want = endpoint.RemoteAccessError
			}
			wantStatus(t, from, want)
		})
	}
	t.Run("RD", func(t *testing.T) {
		ra, rb := rdPair(t, a, b, 0, 0)
		other, err := b.CreateRDQP(endpoint.QPConfig{Domain: 3})
		must(t, err)
		modify(t, other, endpoint.StateInit, endpoint.AttrQKey, endpoint.Attr{QKey: qkey})
		modify(t, other, endpoint.StateRTR, 0, endpoint.Attr{})
		modify(t, other, endpoint.StateRTS, 0, endpoint.Attr{})
		room(t, 1, other)
		must(t, ra.q.PostSend(endpoint.SendRequest{Data: []byte("rd"), RemoteQP: other.Number(), RemoteQKey: qkey, EEContext: ra.ee.Number()}))
		n.carry()
		if got := received(other); len(got) != 0 {
			t.Errorf("a queue pair of domain 3 got %+v through an EE context of domain 0", got)
		}
		wantStatus(t, ra.q, endpoint.RemoteInvalidRDRequest)
		err = other.PostSend(endpoint.SendRequest{Data: []byte("rd"), RemoteQP: ra.q.Number(), RemoteQKey: qkey, EEContext: rb.ee.Number()})
		if !errors.Is(err, endpoint.ErrRequest) {
			t.Errorf("a request by an EE context of another domain: %v", err)
		}
	})
}
