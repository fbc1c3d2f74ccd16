package dfsssp

// turnSet is a set of turns.
type turnSet []uint64

func (c *cabling) newSet() turnSet { return make(turnSet, (len(c.To)*int(c.width)+63)/64) }

func (t turnSet) has(turn int32) bool { return t[turn>>6]&(1<<(turn&63)) != 0 }
func (t turnSet) put(turn int32)      { t[turn>>6] |= 1 << (turn & 63) }
