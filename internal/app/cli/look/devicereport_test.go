package look_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// Devices of one kind are a row; what one of them did not answer or keep is in it, and
// nothing is said to be missing that was not asked for, or of who answered nothing.
func TestDeviceReport(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	b.Host(leaf, "a")
	b.NodeInfo.DeviceID = 0x1017
	c, mute := b.Host(leaf, "c"), b.Host(leaf, "d")
	c.PKeysRead[0], c.Forgets = false, observed.ElementGuard
	mute.InfoRead, mute.PKeysRead[0] = false, false
	type row struct {
		Type    string   `json:"type"`
		ID      string   `json:"device_id"`
		Count   int      `json:"devices"`
		Missing []string `json:"missing"`
		NotKept []string `json:"not_kept"`
	}
	for _, x := range []struct {
		asked  []string
		missed []string
	}{{nil, []string{"PKeyTable"}}, {[]string{snapshot.AskedAudit}, []string{"GUIDInfo", "PKeyTable"}}} {
		c.Info.GUIDCap = 8
		var out bytes.Buffer
		if err := look.DeviceReport(&snapshot.Snapshot{Fabric: b.Fabric, Asked: x.asked}).Print(&out, true); err != nil {
			t.Fatal(err)
		}
		var got struct{ Devices []row }
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		want := []row{
			{Type: "CA", ID: "0x0000", Count: 1, Missing: []string{}, NotKept: []string{}},
			{Type: "CA", ID: "0x1017", Count: 2, Missing: x.missed, NotKept: slices.Sorted(slices.Values(observed.ElementGuard.Names()))},
			{Type: "switch", ID: "0x0000", Count: 1, Missing: []string{}, NotKept: []string{}},
		}
		if !reflect.DeepEqual(got.Devices, want) {
			t.Errorf("asked for %v: got %+v, want %+v", x.asked, got.Devices, want)
		}
	}
}
