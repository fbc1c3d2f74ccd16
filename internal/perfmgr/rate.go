package perfmgr

import "time"

// rates are what the data counters of a port grew by, in bytes a second, between the last
// two readings of them.
type rates struct {
	read     bool
	at       time.Duration // of the last reading
	data     [2]uint64     // PortXmitData, PortRcvData
	rate     [2]float64
	measured set
}

// take enters a reading. Counters that went down were cleared, or the device began again.
func (r *rates) take(now time.Duration, v *values) {
	for i, c := range [...]Counter{PortXmitData, PortRcvData} {
		n := v.value[c]
		r.measured &^= 1 << c
		if r.read && now > r.at && n >= r.data[i] && !v.stuck.has(c) {
			r.rate[i] = float64(n-r.data[i]) / (now - r.at).Seconds()
			r.measured |= 1 << c
		}
		r.data[i] = n
	}
	r.read, r.at = true, now
}

// Rate is by how much PortXmitData or PortRcvData grew between the last two readings, in
// bytes a second; ok is false where that is not known, and for other counters.
func (r *Reading) Rate(c Counter) (bytes float64, ok bool) {
	if c > PortRcvData || !r.known.has(c) || !r.rates.measured.has(c) {
		return 0, false
	}
	return r.rates.rate[c], true
}
