package routes

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// tree is a fat tree of three levels of switches with 2*half ports: pods with half edge and
// half middle switches each, half*half core switches above them, and half hosts at each edge
// switch. Its tables send LIDs up by their digits to base half.
func tree(half, pods int) *Input {
	b := subnettest.New()
	b.NodeInfo.PartitionCap, b.SwitchInfo.PartitionEnforcementCap = 1, 0
	var edges, middles, cores []*observed.Node
	for range half * half {
		cores = append(cores, b.Switch(pods, "core"))
	}
	for pod := range pods {
		for range half {
			edges = append(edges, b.Switch(2*half, "edge"))
		}
		for m := range half {
			n := b.Switch(2*half, "middle")
			middles = append(middles, n)
			for e := range half {
				subnettest.Cable(&n.Ports[1+e], &edges[pod*half+e].Ports[1+half+m])
			}
			for c := range half {
				subnettest.Cable(&n.Ports[1+half+c], &cores[m*half+c].Ports[1+pod])
			}
		}
	}
	hosts := map[ib.LID][3]int{} // pod, edge, port
	for pod := range pods {
		for e := range half {
			for i := range half {
				p := b.Host(edges[pod*half+e], "host")
				hosts[p.Info.LID] = [3]int{pod, e, 1 + i}
			}
		}
	}
	place := map[*observed.Node][3]int{} // level, pod, number
	for i, n := range cores {
		place[n] = [3]int{2, 0, i}
	}
	for i := range middles {
		place[edges[i]], place[middles[i]] = [3]int{0, i / half, i % half}, [3]int{1, i / half, i % half}
	}
	in := Read(b.Fabric)
	ends := map[ib.LID]*observed.Port{}
	for _, e := range in.Ends {
		ends[e.LID] = e.Port
	}
	for _, n := range b.Fabric.Switches() {
		row := make([]ib.PortNum, int(b.LID))
		at := place[n]
		for lid := range row {
			row[lid] = ib.PortNone
			up := ib.PortNum(1 + half + lid%half)
			if at[0] == 1 {
				up = ib.PortNum(1 + half + lid/half%half)
			}
			h, isHost := hosts[ib.LID(lid)]
			var to [3]int
			if end := ends[ib.LID(lid)]; end == nil {
				continue
			} else if !isHost {
				if to = place[end.Node]; end.Node == n {
					row[lid] = 0
					continue
				}
			}
			switch {
			case isHost && at[0] == 0 && at[1] == h[0] && at[2] == h[1]:
				row[lid] = ib.PortNum(h[2])
			case isHost && at[0] == 1 && at[1] == h[0]:
				row[lid] = ib.PortNum(1 + h[1])
			case isHost && at[0] == 2:
				row[lid] = ib.PortNum(1 + h[0])
			case isHost:
				row[lid] = up
			// To switches: up to a common one, and down.
			case at[0] == 0 && to[0] == 1 && at[1] == to[1], at[0] == 0 && to[0] == 1:
				row[lid] = ib.PortNum(1 + half + to[2])
			case at[0] == 0 && to[0] == 2:
				row[lid] = ib.PortNum(1 + half + to[2]/half)
			case at[0] == 1 && to[0] == 2 && at[2] == to[2]/half:
				row[lid] = ib.PortNum(1 + half + to[2]%half)
			case at[0] == 2 && to[0] != 2 && (to[0] == 0 || at[2]/half == to[2]):
				row[lid] = ib.PortNum(1 + to[1])
			case at[0] == 1 && to[0] == 0 && at[1] == to[1]:
				row[lid] = ib.PortNum(1 + to[2])
			case at[0] == 1 && to[0] == 1 && at[2] == to[2]:
				row[lid] = up
			case at[0] == 2 || at[0] == 1 && to[0] != 0:
				row[lid] = 1 // down, and up again: switches only
			default:
				row[lid] = up
			}
		}
		in.Tables[n.Index] = Table{Exits: row}
	}
	return in
}

// parallel is what a caller with cores to spare passes.
func parallel(n int, do func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		go func() { defer all.Done(); do(i) }()
	}
	all.Wait()
}

// BenchmarkJudge judges fat trees: with one lane, with two by pairs of switches, with two that
// change with the ports, and with a LID that is not as the others in each block.
func BenchmarkJudge(b *testing.B) {
	for _, size := range []struct{ half, pods int }{{18, 36}, {32, 40}} {
		in := tree(size.half, size.pods)
		name := fmt.Sprintf("%d-hosts", size.half*size.half*size.pods)
		if r := Judge(in); !r.Right() {
			b.Fatal(r.Reasons())
		}
		layers := Levels{Of: []SLs{SL(0), SL(1)}, Place: make([]int32, len(in.Fabric.Nodes))}
		for i, n := range in.Fabric.Switches() {
			layers.Place[n.Index] = int32(i)
			row := make([]uint8, len(in.Fabric.Switches()))
			for to := range row {
				row[to] = uint8(i+to) % 2
			}
			layers.Layer = append(layers.Layer, row)
		}
		var straight, crossed smp.SLToVLMappingTable
		for sl := range straight.VLs {
			straight.VLs[sl], crossed.VLs[sl] = ib.VL(sl%2), ib.VL(1-sl%2)
		}
		for _, kind := range []string{"one-lane", "one-lane-2-parts", "two-lanes", "lanes-by-ports"} {
			in := *in
			switch kind {
			case "one-lane-2-parts":
				in.Parts, in.Parallel = 2, parallel
			case "two-lanes", "lanes-by-ports":
				in.Levels = layers
				in.VLs = func(*observed.Port) int { return 2 }
				in.Lanes = func(p *observed.Port) Mapping {
					if kind == "lanes-by-ports" && p.Num%2 == 0 {
						return Mapping{Every: &crossed}
					}
					return Mapping{Every: &straight}
				}
			}
			b.Run(name+"/"+kind, func(b *testing.B) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				var r *Result
				for b.Loop() {
					r = Judge(&in)
				}
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/float64(len(in.Fabric.Switches())), "B/switch")
				b.ReportMetric(float64(r.Pairs), "pairs")
			})
		}
	}
}
