package watch

import "time"

// Bucket holds what may be done at once; it fills with time. The zero value is
// full.
type Bucket struct {
	left float64
	at   time.Duration // when left was true
	used bool          // false: full
}

// Take takes one out at time now if there is one; rate is how many come back in a
// second, burst how many there are at the most.
func (b *Bucket) Take(now time.Duration, rate, burst float64) bool {
	b.fill(now, rate, burst)
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

func (b *Bucket) fill(now time.Duration, rate, burst float64) {
	if !b.used {
		b.left = burst
	}
	b.left = min(burst, b.left+rate*max(0, (now-b.at).Seconds()))
	b.at, b.used = max(b.at, now), true
}

// Full reports whether nothing has been taken out that has not come back.
func (b *Bucket) Full(now time.Duration, rate, burst float64) bool {
	b.fill(now, rate, burst)
	return b.left >= burst
}

// Next is when there is one to take.
func (b *Bucket) Next(now time.Duration, rate, burst float64) time.Duration {
	b.fill(now, rate, burst)
	if b.left >= 1 {
		return now
	}
	return now + time.Duration((1-b.left)/rate*float64(time.Second)) + 1
}
