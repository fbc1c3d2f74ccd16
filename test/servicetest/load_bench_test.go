package servicetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// large is a fabric of 3,456 hosts behind 720 switches.
const large = "sim:fattree,radix=24,levels=3"

// must is ask for who wants one of some statuses.
func (l *line) must(t testing.TB, request []byte, want ...int) []byte {
	t.Helper()
	status, body, err := l.ask(request, true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(want, status) {
		head, _, _ := bytes.Cut(request, []byte("\r\n"))
		t.Fatalf("%s: %d %s; want %v", head, status, body, want)
	}
	return body
}

// fill makes partitions of 64 members through the API, one after the other, and returns
// when the last is proved, with the ports and the time it took.
func (s *served) fill(t testing.TB, partitions int) (guids []ib.PortGUID, took time.Duration) {
	t.Helper()
	guids = hosts(t, s.manager)
	began := time.Now()
	l := s.dial(t, false)
	for k := range partitions {
		var members []string
		for i := range 64 {
			members = append(members, fmt.Sprintf(`{"port":%q,"membership":"full"}`, guids[(k*3+i*53)%len(guids)]))
		}
		path := "/partitions"
		if k == partitions-1 {
			path += "?wait=proved"
		}
		body := fmt.Sprintf(`{"pkey":%q,"name":"p%d","members":[%s]}`, ib.PKeyBase(k+1), k, strings.Join(members, ","))
		if answer := l.must(t, s.request("POST", path, body), 201, 202); k == partitions-1 {
			proved(t, answer)
		}
	}
	return guids, time.Since(began)
}

// proved fails where an answer does not say that the change is proved.
func proved(t testing.TB, answer []byte) {
	t.Helper()
	var a struct {
		Outcome struct{ State string }
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.Outcome.State != "proved" {
		t.Fatalf("%v: %s: want it proved", err, answer)
	}
}

// BenchmarkPartitions is the time in which 1,000 partitions of 64 members each are made
// through the API, one request after the other, and proved on a fabric of 3,456 hosts.
func BenchmarkPartitions(b *testing.B) {
	var took []time.Duration
	for range b.N {
		s := serveAPI(b, large)
		_, d := s.fill(b, 1000)
		took = append(took, d)
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took[len(took)/2].Seconds(), "median-s")
}

// BenchmarkMember is the time from a request to add or remove one member, over the Unix
// socket, to the answer that it is proved, on a fabric of 3,456 hosts where 1,000
// partitions of 64 members stand.
func BenchmarkMember(b *testing.B) {
	s := serveAPI(b, large)
	guids, _ := s.fill(b, 1000)
	l := s.dial(b, false)
	var took, busy []time.Duration
	b.ResetTimer()
	for i := range b.N {
		k := ib.PKeyBase(i/2%1000 + 1)
		path := fmt.Sprintf("/partitions/%s/members/%s", k, guids[(int(k)*7+11)%len(guids)])
		request := s.request("PUT", path+"?wait=proved", `{"membership":"limited"}`)
		if i%2 == 1 {
			request = s.request("DELETE", path+"?wait=proved", "")
		}
		began, spent := time.Now(), cpuTime(b)
		answer := l.must(b, request, 200, 201)
		took, busy = append(took, time.Since(began)), append(busy, cpuTime(b)-spent)
		proved(b, answer)
	}
	b.ReportMetric(0, "ns/op")
	report(b, "", took)
	report(b, "cpu-", busy)
}

// report reports the median and the 99th percentile of some times. Those of processor
// time say what the program does, also where other programs have the processors.
func report(b *testing.B, what string, took []time.Duration) {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), what+"median-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), what+"p99-ms")
}

const (
	// readers is how many connections read at once, and watchers how many follow the
	// events.
	readers, watchers = 16, 100
	// readsPerChange is how many reads there are to a change that the watchers are told
	// of: ten changes a second at 10,000 reads a second, on a machine of whatever speed.
	readsPerChange = 1000
)

// BenchmarkReads are reads of a service with 1,000 partitions of 64 members, while a
// hundred watchers follow the events and every thousandth request is a change: reads a
// second, and the processor time of each, with that of the clients, the watchers, and the
// manager's work for the changes. Two processors have 200 us for each of 10,000 reads a
// second.
func BenchmarkReads(b *testing.B) {
	s := serveAPI(b, large)
	guids, _ := s.fill(b, 1000)
	var made struct{ Secret string }
	if err := json.Unmarshal(s.dial(b, false).must(b, s.request("POST", "/tokens", `{"tenant":"provider"}`), 201), &made); err != nil {
		b.Fatal(err)
	}
	s.token = made.Secret
	var events atomic.Int64
	for range watchers {
		go s.watch(s.dial(b, true), &events)
	}
	due := make(chan struct{}, 1000)
	var writer sync.WaitGroup
	writer.Go(func() { s.change(b, guids, due) })
	defer writer.Wait()
	defer close(due)
	for _, way := range []struct {
		name   string
		secure bool
	}{{"unix", false}, {"tls", true}} {
		for _, x := range []struct {
			name string
			path func(i int) (path, header string)
			want int
		}{
			{"partition", func(i int) (string, string) { return "/partitions/" + ib.PKeyBase(i%1000+1).String(), "" }, 200},
			{"member", func(i int) (string, string) {
				k := i % 1000
				return fmt.Sprintf("/partitions/%s/members/%s", ib.PKeyBase(k+1), guids[k*3%len(guids)]), ""
			}, 200},
			{"members", func(i int) (string, string) { return fmt.Sprintf("/partitions/%s/members", ib.PKeyBase(i%1000+1)), "" }, 200},
			{"unmodified", func(i int) (string, string) {
				return "/partitions/" + ib.PKeyBase(i%500+501).String(), fmt.Sprintf(`If-None-Match: "%d"`, i%500+501)
			}, 304},
			{"page", func(i int) (string, string) { return "/partitions", "" }, 200},
		} {
			b.Run(way.name+"/"+x.name, func(b *testing.B) {
				lines := make([]*line, readers)
				for i := range lines {
					lines[i] = s.dial(b, way.secure)
				}
				told := events.Load()
				s.read(b, lines, x.path, x.want, due)
				b.ReportMetric(float64(events.Load()-told)/float64(b.N), "events/op")
			})
		}
	}
}

// read makes b.N reads over some lines at once, and lets due know of each change that is
// to be made meanwhile.
func (s *served) read(b *testing.B, lines []*line, path func(i int) (path, header string), want int, due chan<- struct{}) {
	var next atomic.Int64
	var all sync.WaitGroup
	spent := cpuTime(b)
	b.ResetTimer()
	for _, l := range lines {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return
				}
				if i%readsPerChange == 0 {
					due <- struct{}{}
				}
				var request []byte
				if p, header := path(i); header == "" {
					request = s.request("GET", p, "")
				} else {
					request = s.request("GET", p, "", header)
				}
				if status, _, err := l.ask(request, false); err != nil || status != want {
					b.Errorf("%s: %d, %v; want %d", request, status, err, want)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
	b.ReportMetric(float64((cpuTime(b)-spent).Microseconds())/float64(b.N), "cpu-us/op")
}

// watch follows the events until the connection ends, and counts them.
func (s *served) watch(l *line, events *atomic.Int64) {
	if _, err := l.Write(s.request("GET", "/events", "", "Last-Event-ID: x-1")); err != nil {
		return
	}
	for {
		text, err := l.in.ReadSlice('\n')
		if err != nil {
			return
		}
		if bytes.HasPrefix(text, []byte("id: ")) {
			events.Add(1)
		}
	}
}

// change makes the changes that are due until there are none any more: a member of one of
// the first 500 partitions comes and goes.
func (s *served) change(b *testing.B, guids []ib.PortGUID, due <-chan struct{}) {
	l := s.dial(b, false)
	for i := 0; ; i++ {
		if _, more := <-due; !more {
			return
		}
		k := i/2%500 + 1
		path := fmt.Sprintf("/partitions/%s/members/%s", ib.PKeyBase(k), guids[(k*7+11)%len(guids)])
		request := s.request("PUT", path, `{"membership":"limited"}`)
		if i%2 == 1 {
			request = s.request("DELETE", path, "")
		}
		if status, body, err := l.ask(request, true); err != nil || status > 202 {
			b.Errorf("a change: %d, %v: %s", status, err, body)
			return
		}
	}
}
