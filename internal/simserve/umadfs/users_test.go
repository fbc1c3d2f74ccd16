package umadfs

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// Another user of the machine gets no devices, unless everybody may have them.
func TestOtherUsers(t *testing.T) {
	me := os.Getuid()
	for _, everybody := range []bool{false, true} {
		name := fmt.Sprintf("umadfs-users-%d-%v", os.Getpid(), everybody)
		simulator, err := ibsimd.Listen(topology.Demo(), ibsimd.Config{Socket: name, Fabric: fabric.DefaultConfig()})
		if err != nil {
			t.Fatal(err)
		}
		defer simulator.Close()
		devices, err := Listen(name, simulator)
		if err != nil {
			t.Fatal(err)
		}
		devices.Users = door.Users{Any: everybody}
		simulator.Accompany(devices)
		ctx, end := context.WithCancel(context.Background())
		var served sync.WaitGroup
		defer served.Wait()
		defer end()
		served.Go(func() { _ = simulator.Serve(ctx) }) // it ends with the context
		served.Go(func() { _ = devices.Serve(ctx) })
		ask := func() error {
			c, err := net.DialUnix("unixpacket", nil, address(name))
			if err != nil {
				return err
			}
			defer c.Close()
			var connections []*os.File // not the kernel's, so that what is served of them ends at once
			for range Mounts {
				f, err := os.Open(os.DevNull)
				if err != nil {
					return err
				}
				defer f.Close()
				connections = append(connections, f)
			}
			at, err := introduce(c, "", connections)
			if err == nil && (at.UID != me || at.Node == 0 || at.Fabric != fabricSum(topology.Demo())) {
				err = fmt.Errorf("at %+v", at)
			}
			return err
		}
		if err := ask(); err != nil {
			t.Errorf("everybody may: %v; the owner: %v", everybody, err)
		}
		need.AsUser(t, need.Nobody, func() {
			if err := ask(); (err == nil) != everybody || err != nil && !strings.Contains(err.Error(), "may not use this simulator") {
				t.Errorf("everybody may: %v; another user: %v", everybody, err)
			}
		})
	}
}
