package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// Snapshot reads the fabric behind a link as Read does, and enters source as
// its name. Progress, unless nil, is called about once a second with the
// packets sent so far.
func Snapshot(ctx context.Context, link link.Link, source string, o sweep.Options, progress func(sent int)) (*snapshot.Snapshot, SMPs, error) {
	s := &snapshot.Snapshot{ReadAt: time.Now().UTC(), Source: source, Asked: askedIn(o)}
	r, err := ReadShowing(ctx, link, o, progress)
	if err != nil {
		return nil, SMPs{}, err
	}
	s.Fabric, s.Faults = r.Fabric, faultsIn(r.Faults)
	return s, r.SMPs, nil
}

// faultsIn are faults as a snapshot keeps them.
func faultsIn(faults []sweep.Fault) []snapshot.Fault {
	out := []snapshot.Fault{}
	for _, f := range faults {
		if errors.Is(f, sweep.ErrDiagnosis) {
			continue // it was read, and is in the Fabric
		}
		out = append(out, snapshot.Fault{Where: f.Where, Why: f.Err.Error()})
	}
	return out
}

// Unread counts the places that should have been read: a device that is on no list of
// cables is none, and one that says it is not well was read.
func Unread(faults []sweep.Fault) (n int) {
	for _, f := range faults {
		if !errors.Is(f, sweep.ErrUndeclared) && !errors.Is(f, sweep.ErrDiagnosis) {
			n++
		}
	}
	return n
}

// askedIn names what a reading asks for beyond nodes, ports, links and P_Key tables.
func askedIn(o sweep.Options) []string {
	out := []string{}
	for _, asked := range []struct {
		name string
		on   bool
	}{
		{snapshot.AskedAudit, o.Audit}, {snapshot.AskedForwarding, o.Forwarding},
		{snapshot.AskedMulticast, o.Multicast}, {snapshot.AskedQoS, o.QoS},
	} {
		if asked.on {
			out = append(out, asked.name)
		}
	}
	return out
}

// SnapshotFileMax is the most bytes of a snapshot that is read.
const SnapshotFileMax = 16 << 30

// LoadSnapshot reads the file that SaveSnapshot wrote.
func LoadSnapshot(path string) (*snapshot.Snapshot, error) {
	f, err := files.Open(path, SnapshotFileMax)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := snapshot.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// SaveSnapshot conceals the keys in s and replaces the file as a whole. Only its
// owner can read it: where nobody else may read devices, nobody else has to know
// what is in them.
func SaveSnapshot(path string, s *snapshot.Snapshot) error {
	return saveSnapshot(path, s, snapshot.Write)
}

// SaveAnonymized is SaveSnapshot with something else in place of names, GUIDs and P_Keys.
func SaveAnonymized(path string, s *snapshot.Snapshot) error {
	return saveSnapshot(path, s, func(w io.Writer, s *snapshot.Snapshot) error {
		return snapshot.WriteAnonymized(w, s, rand.NewChaCha8(Secret()).Uint64)
	})
}

func saveSnapshot(path string, s *snapshot.Snapshot, write func(io.Writer, *snapshot.Snapshot) error) error {
	s.Conceal(Secret())
	err := files.Replace(path, func(w io.Writer) error { return write(w, s) })
	if err != nil {
		return fmt.Errorf("snapshot %s: %w", path, err)
	}
	return nil
}
