package daemon

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Expect enters the ports of a list of cables that the book does not know, so
// that their keys are looked for where they stand.
func (k *Keyring) Expect(list *cables.List) error {
	declared := mkey.Declared(func() *cables.List { return list })
	for _, c := range list.All() {
		for _, at := range []observed.Place{c.From, c.To} {
			id, ok := declared(observed.Place(at))
			if !ok || k.Book.Find(id, observed.Place(at)) != nil {
				continue
			}
			if stands := k.Book.Of(id); len(stands) > 0 {
				k.Book.Cable(stands[0], observed.Place(at))
			} else if _, err := k.Book.Add(id, observed.Place(at)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Recover enters in the book which generation each port of a subnet was seen to
// have, read with keys that go further than the book does. It names the places where
// a port should be that answered to none of them.
func (k *Keyring) Recover(keys *mkey.Keys, f *observed.Fabric) (found int, locked []string) {
	for _, p := range f.EndPorts() {
		at := mkey.PlaceOf(p.Via)
		s := keys.Find(mkey.IDOf(p), at)
		switch {
		case p.InfoRead && p.Key == 0 && p.Info.MKeyProtectBits == 0:
			continue // it has none
		case s != nil && p.Guarded() && keys.Generation(s, p.Key) != 0:
			k.Book.Confirm(s, keys.Generation(s, p.Key))
			k.Book.Cable(s, at)
			found++
		default:
			locked = append(locked, p.String())
		}
	}
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Silent {
				locked = append(locked, fmt.Sprintf("the device behind %s", p))
			}
		}
	}
	return found, locked
}

// ExportSAKey writes the key of trusted queries into a directory of exported keys.
func ExportSAKey(path string, key ib.SMKey) error {
	return files.Replace(DataDir(path).File("sa_key"), files.Bytes(fmt.Appendf(nil, "0x%016x\n", uint64(key))))
}
