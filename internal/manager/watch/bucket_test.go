package watch

import (
	"testing"
	"time"
)

// TestBucket takes three out of a bucket of three, and then as they come back, one in half a second.
func TestBucket(t *testing.T) {
	const rate, burst = 2, 3
	var b Bucket
	for i, x := range []struct {
		now              time.Duration
		full, take, last bool // last: full after the take
		next             time.Duration
	}{
		{10 * time.Second, true, true, false, 10 * time.Second},
		{10 * time.Second, false, true, false, 10 * time.Second},
		{10 * time.Second, false, true, false, 10*time.Second + 500*time.Millisecond + 1},
		{10 * time.Second, false, false, false, 10*time.Second + 500*time.Millisecond + 1},
		{9 * time.Second, false, false, false, 9*time.Second + 500*time.Millisecond + 1}, // a clock that goes back gives nothing
		{10*time.Second + 250*time.Millisecond, false, false, false, 10*time.Second + 500*time.Millisecond + 1},
		{10*time.Second + 500*time.Millisecond, false, true, false, 11*time.Second + 1},
		{11 * time.Second, false, true, false, 11*time.Second + 500*time.Millisecond + 1},
		{12*time.Second + 500*time.Millisecond, true, true, false, 12*time.Second + 500*time.Millisecond}, // three again, not three and a half
		{12*time.Second + 500*time.Millisecond, false, true, false, 12*time.Second + 500*time.Millisecond},
	} {
		if i == 8 {
			if full := b.Full(12*time.Second+499*time.Millisecond, rate, burst); full {
				t.Error("full before it is")
			}
		}
		if got := b.Full(x.now, rate, burst); got != x.full {
			t.Errorf("%d: full %v, want %v", i, got, x.full)
		}
		if got := b.Take(x.now, rate, burst); got != x.take {
			t.Errorf("%d: taken %v, want %v", i, got, x.take)
		}
		if got := b.Full(x.now, rate, burst); got != x.last {
			t.Errorf("%d: full %v after it", i, got)
		}
		if got := b.Next(x.now, rate, burst); got != x.next {
			t.Errorf("%d: the next at %v, want %v", i, got, x.next)
		}
	}
	var fresh Bucket
	if got := fresh.Next(time.Second, rate, burst); got != time.Second {
		t.Errorf("the first of a full one at %v", got)
	}
}
