package endpoint

import (
	"container/heap"
	"time"
)

// timers is a heap of the contexts that wait for a time, the soonest first.
type timers []*context

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].deadline < t[j].deadline }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].timer, t[j].timer = i+1, j+1
}

func (t *timers) Push(x any) {
	c, ok := x.(*context)
	if !ok {
		return // nothing else is pushed
	}
	*t = append(*t, c)
	c.timer = len(*t)
}

func (t *timers) Pop() any {
	last := len(*t) - 1
	c := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	c.timer = 0
	return c
}

// wake has c's Expire called at a time; an earlier wish is forgotten.
func (c *context) wake(at time.Duration) {
	c.deadline = at
	if c.timer != 0 {
		heap.Fix(&c.d.timers, c.timer-1)
		return
	}
	heap.Push(&c.d.timers, c)
}

// sleep forgets the wish to be woken.
func (c *context) sleep() {
	if c.timer != 0 {
		heap.Remove(&c.d.timers, c.timer-1)
	}
}

// Deadline is when Expire has something to do, if ever.
func (d *Device) Deadline() (at time.Duration, ok bool) {
	if len(d.timers) == 0 {
		return 0, false
	}
	return d.timers[0].deadline, true
}

// Expire does what is due: it sends again what was not acknowledged in time, or
// gives it up.
func (d *Device) Expire(now time.Duration) {
	for len(d.timers) > 0 && d.timers[0].deadline <= now {
		c := d.timers[0]
		c.end.Expire(now)
		c.after()
	}
}
