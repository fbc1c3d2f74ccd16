package cli

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/judge/shadow"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// shadowDir is where records are kept, in a data directory; writesShown bounds the writes that
// are kept of one round.
const (
	shadowDir   = "shadow"
	writesShown = 8
)

// keep opens the records, once there is a policy to judge by. A directory that nobody named need not
// be there.
func (w *watching) keep() error {
	if w.records != nil || w.policy.loaded == nil {
		return nil
	}
	path, named := w.manager.Cables.Data, w.manager.Cables.Data != ""
	if !named {
		dir, err := daemon.DefaultDataDir(w.where.spec)
		if err != nil || dir == "" {
			return nil
		}
		path = string(dir)
	}
	err := w.openRecords(path)
	switch {
	case err == nil:
		fmt.Fprintf(w, "ibwarden: read-only: what is found is kept in %s: ibwarden show shadow\n", path)
	case named:
		return misuse(fmt.Errorf("--data: %w", err))
	default:
		fmt.Fprintf(w, "ibwarden: read-only: nothing is kept for ibwarden show shadow: %v\n", err)
	}
	return nil
}

func (w *watching) openRecords(path string) error {
	dir, err := daemon.OpenDataDir(path)
	if err != nil {
		return err
	}
	at := dir.File(shadowDir)
	store, err := files.OpenShadow(at)
	if err != nil {
		return err
	}
	before, _, err := files.ReadShadow(at, time.Now())
	if err != nil {
		store.Close()
		return err
	}
	w.records, w.ledger = store, shadow.NewLedger(before)
	return nil
}

func (w *watching) close() {
	if w.records != nil {
		w.records.Close()
	}
}

// record judges a reading, and keeps what is new.
func (w *watching) record(snap *snapshot.Snapshot, allowed []observed.Partition, smps daemon.SMPs, took time.Duration) {
	in := shadow.Input{
		At: snap.ReadAt, Took: took, Every: w.manager.Periods.Drift, Reads: smps.Get, Fabric: snap.Fabric, Allowed: allowed,
	}
	for _, a := range w.policy.absent {
		in.Absent = append(in.Absent, fmt.Sprintf("%s: no end port for %s", a.Where, a.Selector))
	}
	for _, place := range look.Guarded(snap.Fabric) {
		in.Missing = true
		in.Unread = append(in.Unread, shadow.Place{Where: place, Why: "it did not answer: an M_Key that was not given guards it (--m-key-file), or it hangs"})
	}
	for _, f := range snap.Faults {
		in.Missing = true
		in.Unread = append(in.Unread, shadow.Place{Where: f.Where, Why: f.Why})
	}
	records := w.ledger.Round(in)
	if records[len(records)-1].Round.Complete {
		records = append(records, w.ledger.WouldWrite(w.wouldWrite(snap.Fabric))...)
	}
	if err := w.records.Append(in.At, records, w.ledger.Open); err != nil {
		fmt.Fprintln(w, "ibwarden: records for ibwarden show shadow:", err)
	}
}

// wouldWrite says what ibwarden would write if it managed the fabric with the policy.
func (w *watching) wouldWrite(f *observed.Fabric) (out shadow.Writes) {
	m := &w.manager
	c := engine.Config{
		LMC: m.LMC, Routing: m.Routing.Engine, RoutingFile: m.Routing.Tables, Profile: m.Profile, MKey: w.where.mKey, Known: w.policy.assigned,
	}
	c.Known.Names = map[string]bool{} // those that are absent do not stop a policy in force
	for _, a := range w.policy.absent {
		c.Known.Names[a.Selector.String()] = true
	}
	want, err := desired.Predict(c.Desired(f), w.policy.loaded)
	if err != nil {
		return shadow.Writes{Refused: err.Error()}
	}
	by := map[string]int{}
	for _, stage := range plan.Diff(f, want.Tables).Stages {
		for _, op := range stage.Ops {
			out.Blocks++
			by[smp.AttributeName(op.Attribute)]++
			if len(out.First) < writesShown {
				out.First = append(out.First, because(op, stage.Name, want.Tables))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out.By = append(out.By, shadow.AttributeWrites{Attribute: name, Blocks: by[name]})
	}
	return out
}

// because says what a write is for.
func because(op plan.Op, stage string, want *observed.Desired) string {
	text := fmt.Sprintf("%s: %s (%s)", op.Port, smp.AttributeName(op.Attribute), stage)
	if op.Attribute == smp.AttrPKeyTable {
		var holds []ib.PKey
		for _, k := range op.Port.ReadPKeys() {
			holds = append(holds, k)
		}
		gives := slices.Clone(want.Port(op.Port).PKeys)
		none := func(k ib.PKey) bool { return k == 0 }
		text += fmt.Sprintf(": holds %v, the policy gives %v", slices.DeleteFunc(holds, none), slices.DeleteFunc(gives, none))
	}
	return text
}
