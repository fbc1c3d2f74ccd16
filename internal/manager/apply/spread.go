package apply

import (
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// spread orders operations such that those that follow each other are for different devices,
// as far as there are any: a device answers one request after the other, and a window full
// of requests for one of them waits for it while the others have nothing to do. The
// operations of one device stay in their order. No more than over devices are written at the
// same time, so that the first are done before the last are begun.
func spread(ops []plan.Op, over int) []plan.Op {
	of := make(map[*observed.Node]int)
	var lists [][]plan.Op // by device, in the order in which they come
	for _, op := range ops {
		i, known := of[op.Port.Node]
		if !known {
			i = len(lists)
			of[op.Port.Node], lists = i, append(lists, nil)
		}
		lists[i] = append(lists[i], op)
	}
	if len(lists) == len(ops) || len(lists) == 1 {
		return ops
	}
	out := make([]plan.Op, 0, len(ops))
	for len(lists) > 0 {
		some := lists[:min(over, len(lists))]
		lists = lists[len(some):]
		for left := true; left; {
			left = false
			for i, list := range some {
				if len(list) > 0 {
					out, some[i], left = append(out, list[0]), list[1:], true
				}
			}
		}
	}
	return out
}
