package bolt

import (
	"path/filepath"
	"testing"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/storetest"
)

func place(t testing.TB) storetest.Place {
	dir := filepath.Join(t.TempDir(), "store")
	return storetest.Place{
		Open: func(t testing.TB) store.Store {
			t.Helper()
			s, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Renew: place,
	}
}

func TestContract(t *testing.T) { storetest.Run(t, place) }
