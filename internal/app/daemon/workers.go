package daemon

import (
	"runtime"
	"sync"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// Workers are as many as there are processors.
func Workers() graph.Workers {
	return graph.Workers{Count: runtime.GOMAXPROCS(0), Run: func(n int, do func(i int)) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { do(i) })
		}
		all.Wait()
	}}
}
