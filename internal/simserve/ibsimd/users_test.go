package ibsimd_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/test/need"
)

// An abstract socket has no permissions of its own: another user of the machine gets no
// place at the fabric, whatever he asks for, so that he writes no tables and reads none. Where
// everybody may use it he is a client as any other.
func TestOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root, who alone can act as another user")
	}
	for _, everybody := range []bool{false, true} {
		c := ibsimd.Config{Users: door.Users{Any: everybody}, Fabric: fabric.DefaultConfig()}
		s := serve(t, small(t), c)
		own := attach(t, s.Name(), "one")
		need.AsUser(t, need.Nobody, func() {
			other := sockets(t, s.Name())
			if kind, _ := other.connect("two", true); (kind == ctlConnect) != everybody {
				t.Errorf("everybody may: %v; another user's connect request is answered by %d", everybody, kind)
			}
			if everybody {
				other.alive()
				return
			}
			// As if he had been given the place of the one who has it.
			other.slot = own.slot
			for kind := uint32(ctlConnect); kind <= ctlGetPKeys; kind++ {
				if got, _ := other.ask(kind, []byte{1}); got != ctlError {
					t.Errorf("another user's control request %d is answered by %d", kind, got)
				}
			}
			request := directed(7, mad.MethodSet, smp.AttrPKeyTable, 0)
			if _, err := other.data.WriteTo(request.bytes(), abstract(s.Name(), fmt.Sprintf("out%d", own.slot))); err == nil {
				t.Error("another user's packet is taken by the data socket of a client")
			}
			if d := other.receive(silenceWait); d != nil {
				t.Errorf("another user is sent a packet %v", d)
			}
		})
		own.alive()
		if !everybody && isSM(t, s, s.Topology().Nodes[2].GUID) {
			t.Error("another user has set IsSM")
		}
	}
}

// Of a datagram by UDP nobody knows which user sent it: it is served only where everybody may
// use the fabric.
func TestUDPIsForEverybody(t *testing.T) {
	c := ibsimd.Config{UDP: "127.0.0.1:17190", Fabric: fabric.DefaultConfig()}
	s, err := ibsimd.Listen(small(t), c)
	if err == nil {
		s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "--any-user") {
		t.Errorf("UDP without a word about who may come: %v", err)
	}
}
