package umadfs

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// TestSysfs reads what libibumad reads, before and after the fabric changed:
// nothing in it is older than the question.
func TestSysfs(t *testing.T) {
	w := newWorld(t)
	s := w.enter(1)
	const port = sysDir + "/sim0/ports/1/"
	want := func(values map[string]string) {
		t.Helper()
		for name, value := range values {
			if got := s.text(name); got != value+"\n" {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		}
	}
	guid := func(v uint64) string {
		return fmt.Sprintf("%04x:%04x:%04x:%04x", v>>48, v>>32&0xFFFF, v>>16&0xFFFF, v&0xFFFF)
	}
	host := w.hosts[1]
	want(map[string]string{
		sysMADDir + "/abi_version": "5", sysMADDir + "/umad0/ibdev": "sim0", sysMADDir + "/umad0/port": "1",
		sysMADDir + "/issm0/ibdev": "sim0", sysMADDir + "/issm0/port": "1",
		sysDir + "/sim0/node_type": "1: CA", sysDir + "/sim0/node_guid": guid(uint64(host.GUID)),
		sysDir + "/sim0/sys_image_guid": guid(host.SystemImageGUID), sysDir + "/sim0/node_desc": host.Description,
		port + "state": "4: ACTIVE", port + "phys_state": "5: LinkUp", port + "link_layer": "InfiniBand",
		port + "lid": fmt.Sprintf("0x%x", uint16(w.lid(1))), port + "lid_mask_count": "1", port + "rate": "10 Gb/sec (4X SDR)",
		port + "sm_lid": fmt.Sprintf("0x%x", uint16(w.lid(2))), port + "sm_sl": "0",
		port + "gids/0":  "fe80:0000:0000:0000:" + guid(uint64(host.Ports[1].GUID)),
		port + "pkeys/0": "0x7fff", port + "pkeys/1": "0x8010", port + "pkeys/2": "0x8020", port + "pkeys/3": "0x0000",
	})
	change := func(do func(f *fabric.Fabric) error) {
		t.Helper()
		var err error
		if doErr := w.sim.Do(func(f *fabric.Fabric) { err = do(f) }); doErr != nil || err != nil {
			t.Fatal(doErr, err)
		}
	}
	link := host.Ports[1]
	change(func(f *fabric.Fabric) error { return f.Unlink(host.GUID, 1) })
	want(map[string]string{port + "state": "1: DOWN", port + "phys_state": "2: Polling"})
	change(func(f *fabric.Fabric) error { return f.Link(host.GUID, 1, link.Peer.GUID, link.PeerPort) })
	want(map[string]string{port + "state": "2: INIT", port + "phys_state": "5: LinkUp"})
}
