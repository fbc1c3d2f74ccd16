package desired

import "testing"

// Shares are divided among virtual lanes where there are shares, and more than one lane.
func TestDivides(t *testing.T) {
	for _, x := range []struct {
		l    *QoSLevels
		want bool
	}{
		{nil, false},
		{&QoSLevels{vls: 2}, false},
		{&QoSLevels{vls: 1, groups: groups{share: []int{100}}}, false},
		{&QoSLevels{vls: 2, groups: groups{share: []int{100}}}, true},
	} {
		if got := x.l.Divides(); got != x.want {
			t.Errorf("%+v: %v, want %v", x.l, got, x.want)
		}
	}
}
