package fabric_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// The written rules, for this test alone.
func meets(a, b uint16) bool { return a&0x7FFF != 0 && (a^b)<<1 == 0 && (a|b)>>15 == 1 }

func meetsAny(a uint16, table []ib.PKey) bool {
	for _, b := range table {
		if meets(a, uint16(b)) {
			return true
		}
	}
	return false
}

// tables are what the model knows of a star: keys of hosts and of switch ports.
type tables struct {
	host, port     [3][]ib.PKey
	in, out        [3]bool
	rawIn, rawOut  [3]bool
	qkeyOf, qkeyTo ib.QKey
}

// passes is whether the switch carries a packet from host a to host b.
func (w *tables) passes(a, b int, key uint16, raw bool) bool {
	if raw {
		return !w.rawIn[a] && !w.rawOut[b]
	}
	return (!w.in[a] || meetsAny(key, w.port[a])) && (!w.out[b] || meetsAny(key, w.port[b]))
}

func (w *tables) expects(s endpoint.Service, a, b int, i, j uint16) bool {
	raw := s == endpoint.RawEtherType || s == endpoint.RawIPv6
	key := uint16(w.host[a][i])
	if !w.passes(a, b, key, raw) {
		return false
	}
	switch s {
	case endpoint.RawEtherType, endpoint.RawIPv6:
		return true
	case endpoint.GSI:
		return meetsAny(key, w.host[b])
	case endpoint.RC, endpoint.UC:
		return meets(key, uint16(w.host[b][j]))
	}
	return meets(key, uint16(w.host[b][j])) && w.qkeyOf == w.qkeyTo
}

// pair are the two ends of one trial.
type pair struct {
	from, to *endpoint.QP
	ee       uint32 // of RD at from
}

// connect makes both ends of a service, from index i at host a to j at host b.
func (b *bench) connect(s endpoint.Service, from, to int, i, j uint16, qkey ib.QKey) pair {
	b.t.Helper()
	const kernel = endpoint.Kernel
	var qps [2]*endpoint.QP
	var ends [2]interface {
		Modify(endpoint.Caller, endpoint.State, endpoint.AttrMask, endpoint.Attr) error
	}
	var numbers [2]uint32
	var ee uint32
	for k, host := range []int{from, to} {
		d := b.device(hostGUID(host + 1))
		var err error
		if s == endpoint.RD {
			qps[k], err = d.CreateRDQP(endpoint.QPConfig{})
		} else {
			qps[k], err = d.CreateQP(kernel, endpoint.QPConfig{Service: s, Port: 1})
		}
		b.must(err)
		ends[k], numbers[k] = qps[k], uint32(qps[k].Number())
		if s == endpoint.RD {
			b.must(qps[k].Modify(kernel, endpoint.StateInit, endpoint.AttrQKey, endpoint.Attr{QKey: qkey}))
			b.must(qps[k].Modify(kernel, endpoint.StateRTR, 0, endpoint.Attr{}))
			b.must(qps[k].Modify(kernel, endpoint.StateRTS, 0, endpoint.Attr{}))
			e, err := d.CreateEEContext()
			b.must(err)
			ends[k], numbers[k] = context{e}, e.Number()
		}
	}
	ee = numbers[0]
	for k, index := range []uint16{i, j} {
		a := endpoint.Attr{
			Port: 1, PKeyIndex: index, QKey: qkey, Remote: numbers[1-k], PathMTU: ib.MTU256,
			Path: endpoint.Address{DLID: ib.LID([]int{to, from}[k] + 2)},
		}
		first, second, third := endpoint.AttrPort|endpoint.AttrPKeyIndex, endpoint.AttrMask(0), endpoint.AttrSendPSN
		switch s {
		case endpoint.UD:
			first |= endpoint.AttrQKey
		case endpoint.RC, endpoint.UC, endpoint.RD:
			second = endpoint.AttrPath | endpoint.AttrPathMTU | endpoint.AttrRemote | endpoint.AttrReceivePSN
			if s != endpoint.UC {
				second |= endpoint.AttrMinRNRTimer
				third |= endpoint.AttrTimeout | endpoint.AttrRetryCount | endpoint.AttrRNRRetryCount
			}
		case endpoint.GSI:
			first, third = 0, 0
		default:
			first, third = endpoint.AttrPort, 0
		}
		b.must(ends[k].Modify(kernel, endpoint.StateInit, first, a))
		b.must(ends[k].Modify(kernel, endpoint.StateRTR, second, a))
		b.must(ends[k].Modify(kernel, endpoint.StateRTS, third, a))
	}
	b.must(qps[1].PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 512)}))
	return pair{qps[0], qps[1], ee}
}

// context gives an EE context the Modify of a QP.
type context struct{ *endpoint.EEContext }

func (c context) Modify(_ endpoint.Caller, to endpoint.State, mask endpoint.AttrMask, a endpoint.Attr) error {
	return c.EEContext.Modify(to, mask, a)
}

// TestBruteForce sends a packet of every service from every host to every other,
// under every P_Key index and with the right and a wrong Q_Key, through random
// tables, and compares what arrives with the rules written down above, which
// share no code with the fabric.
func TestBruteForce(t *testing.T) {
	services := []endpoint.Service{
		endpoint.UD, endpoint.UC, endpoint.RC, endpoint.RD, endpoint.GSI, endpoint.RawEtherType, endpoint.RawIPv6,
	}
	trials, arrived := 0, 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		c := fabric.DefaultConfig()
		c.Profile = func(_ *topology.Node, d *sma.Config) { d.TrapSends = 1 }
		b := newQuietBench(t, star(t), c)
		var w tables
		draw := func(n int) []ib.PKey {
			keys := make([]ib.PKey, n)
			for i := range keys {
				keys[i] = ib.PKey(r.IntN(2)<<15 | (1 + r.IntN(3)))
			}
			return keys
		}
		for i := range 3 {
			w.host[i], w.port[i] = draw(3), draw(3)
			b.keys(hostGUID(i+1), 1, w.host[i]...)
			b.keys(switchGUID(0), ib.PortNum(i+1), w.port[i]...)
			w.in[i], w.out[i], w.rawIn[i], w.rawOut[i] = r.IntN(3) == 0, r.IntN(3) == 0, r.IntN(4) == 0, r.IntN(4) == 0
			b.change(switchGUID(0), ib.PortNum(i+1), func(p *smp.PortInfo) {
				p.PartitionEnforcementInbound, p.PartitionEnforcementOutbound = w.in[i], w.out[i]
				p.FilterRawInbound, p.FilterRawOutbound = w.rawIn[i], w.rawOut[i]
			})
		}
		for n := range 3 * 3 * 3 * 3 * 2 * len(services) {
			from, to, i, j, right := n%3, n/3%3, uint16(n/9%3), uint16(n/27%3), n/81%2 == 0
			s := services[n/162]
			if from == to {
				continue
			}
			w.qkeyOf, w.qkeyTo = 7, 7
			if !right {
				w.qkeyOf = 8
			}
			p := b.connect(s, from, to, i, j, w.qkeyTo)
			size := 64
			if s == endpoint.GSI {
				size = mad.Size
			}
			request := endpoint.SendRequest{Data: make([]byte, size), EEContext: p.ee}
			if s != endpoint.RC && s != endpoint.UC {
				request.To.DLID = ib.LID(to + 2)
				request.RemoteQP, request.RemoteQKey, request.PKeyIndex = p.to.Number(), w.qkeyOf, i
			}
			if s == endpoint.GSI {
				request.RemoteQKey = ib.QKeyGSI
			}
			b.must(p.from.PostSend(request))
			b.idle()
			got, want := b.arrived(p.to) == 1, w.expects(s, from, to, i, j)
			if got != want {
				t.Fatalf("seed %d: %v from host %d index %d to host %d index %d, Q_Keys %v and %v, tables %+v: arrived %v, want %v; %s",
					seed, s, from, i, to, j, w.qkeyOf, w.qkeyTo, w, got, want, b.outcomes())
			}
			p.from.Destroy()
			p.to.Destroy()
			trials++
			if got {
				arrived++
			}
		}
	}
	if arrived == 0 || arrived == trials {
		t.Errorf("%d of %d arrived: the tables decide nothing", arrived, trials)
	}
	t.Logf("%d packets sent, %d arrived", trials, arrived)
}
