package servicetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// Many who ask for dry runs and go at once, or stay, keep nobody from a change, and leave
// dry runs possible.
func TestDryRunsOfManyCallers(t *testing.T) {
	s, served := start(t, "sim:fattree,radix=8,levels=2", t.TempDir())
	hosts(t, served)
	dry := service.Request{Change: resource.PutPartition{Partition: resource.Partition{PKey: 0x77, Name: "dry"}}, By: provider, Seen: resource.Unseen, DryRun: true}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				gone, leave := context.WithTimeout(ctx, time.Millisecond)
				_, err := s.Do(gone, dry)
				leave()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		do(t, s, provider, resource.PutPartition{Partition: resource.Partition{PKey: 0x10, Name: "real"}})
		do(t, s, provider, resource.DeletePartition{PKey: 0x10})
	}
	stop()
	all.Wait()
	if r, err := s.Do(t.Context(), dry); err != nil || r.Plan == nil {
		t.Fatalf("a dry run after all those: %+v, %v", r, err)
	}
	_ = s.Read(func(st *resource.State) {
		if st.Partition(0x77) != nil {
			t.Error("a dry run made a partition")
		}
	})
}
