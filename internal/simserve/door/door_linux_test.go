package door

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// Root and the owner come in, others only where everybody may.
func TestAdmit(t *testing.T) {
	own := os.Geteuid()
	for _, x := range []struct {
		uid       int
		ours, any bool
	}{{0, true, true}, {own, true, true}, {own + 1, false, true}, {need.Nobody, own == need.Nobody, true}, {Unknown, false, true}} {
		if err := (Users{}).Admit(x.uid); (err == nil) != x.ours {
			t.Errorf("user %d: %v", x.uid, err)
		} else if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("want root or user %d", own)) {
			t.Errorf("user %d: %v: want to read who may", x.uid, err)
		}
		if err := (Users{Any: true}).Admit(x.uid); (err == nil) != x.any {
			t.Errorf("user %d where everybody may: %v", x.uid, err)
		}
	}
}

// The user at the other end of a connection is the kernel's word.
func TestPeer(t *testing.T) {
	address := &net.UnixAddr{Name: fmt.Sprintf("@door-test-%d", os.Getpid()), Net: "unix"}
	l, err := net.ListenUnix("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := func(uid int) {
		here, err := net.DialUnix("unix", nil, address)
		if err != nil {
			t.Error(err)
			return
		}
		defer here.Close()
		there, err := l.AcceptUnix()
		if err != nil {
			t.Error(err)
			return
		}
		defer there.Close()
		if got, err := Peer(there); err != nil || got != uid {
			t.Errorf("user %d, %v; want %d", got, err, uid)
		}
	}
	want(os.Geteuid())
	need.AsUser(t, need.Nobody, func() { want(need.Nobody) })
}
