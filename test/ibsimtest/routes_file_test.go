package ibsimtest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// The file of forwarding tables is OpenSM's: OpenSM routes by the one that is written here,
// and what OpenSM dumps is read here, with the same exits each way.
func TestFileIsOpenSMs(t *testing.T) {
	tools, err := FindTools()
	need.Need(t, err)
	b := routingtest.New(nil)
	b.FatTree2(4, 2, 3, 1)
	for _, n := range b.Fabric.Switches() {
		n.Ports[0].GUID = ib.PortGUID(n.GUID()) // as in ibsim
	}
	ours, err := routing.Compute(b.Fabric, b.Destinations, routing.UpDown, graph.Room{VLs: 1, Layers: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range b.Fabric.Switches() {
		s := n.Switch
		s.LFT = ours.Linear[n.Index]
		s.Info.LinearFDBTop = ours.Top
		s.LFTRead = slices.Repeat([]bool{true}, len(s.LFT)/64+1)
	}
	var text bytes.Buffer
	if unread, err := observed.WriteLFTs(&text, b.Fabric); err != nil || unread > 0 {
		t.Fatal(unread, err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "written.lfts")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	theirs, err := OpenSM(ctx, tools, dir, b, "file", "--lfts_file", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range b.Fabric.Switches() {
		for _, d := range b.Destinations {
			if got, want := theirs.Linear[n.Index][d.LID], ours.Linear[n.Index][d.LID]; got != want {
				t.Errorf("OpenSM leads %s from %s by port %d, the file by %d", d.Port, n.Name(), got, want)
			}
		}
	}
	dump, err := os.Open(filepath.Join(dir, "opensm-lfts.dump"))
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close()
	read, err := observed.ParseLFTs(dump)
	if err != nil {
		t.Fatal(err)
	}
	again, err := routing.Request{Engine: routing.File, Room: graph.Room{VLs: 1, Layers: 1}, File: read}.Compute(b.Fabric, b.Destinations)
	if err != nil || again.Notes != nil {
		t.Fatal(err, again)
	}
	for _, n := range b.Fabric.Switches() {
		if !slices.Equal(again.Linear[n.Index], ours.Linear[n.Index]) {
			t.Errorf("%s: %v, by the dump %v", n.Name(), ours.Linear[n.Index], again.Linear[n.Index])
		}
	}
}
