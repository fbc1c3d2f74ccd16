package ufm

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// Limits of hosts and jobs.
const (
	// HostsMax bounds the hosts of one call.
	HostsMax = 10_000
	// JobsMax is how many jobs of a tenant are kept; a further one ends the oldest.
	JobsMax = 1000
	// JobLife is how long a job is kept.
	JobLife = time.Hour
)

// expandHosts reads the names of hosts as Slurm writes them: with commas between them,
// and ranges of numbers in brackets, as in node[01-03,7].
func expandHosts(list string) (out []string, err error) {
	depth, from := 0, 0
	for i := 0; i <= len(list); i++ {
		switch {
		case i < len(list) && list[i] == '[':
			depth++
		case i < len(list) && list[i] == ']':
			depth--
		case i == len(list) || list[i] == ',' && depth == 0:
			word := strings.TrimSpace(list[from:i])
			if from = i + 1; word == "" {
				continue
			}
			some, err := expandWord(word)
			if err != nil {
				return nil, err
			}
			if out = append(out, some...); len(out) > HostsMax {
				return nil, tooManyHosts()
			}
		}
		if depth < 0 || depth > 1 {
			break
		}
	}
	if depth != 0 {
		return nil, wrong(http.StatusBadRequest, "hosts %.80q: a bracket is missing", list)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func tooManyHosts() error { return wrong(http.StatusBadRequest, "hosts: want at most %d", HostsMax) }

// expandWord expands the first brackets of a word, and then the rest.
func expandWord(word string) (out []string, err error) {
	if len(word) > resource.HostMax {
		return nil, wrong(http.StatusBadRequest, "host %.40q: want at most %d bytes", word, resource.HostMax)
	}
	before, rest, has := strings.Cut(word, "[")
	if !has {
		return []string{word}, nil
	}
	ranges, after, _ := strings.Cut(rest, "]")
	tails, err := expandWord(after)
	if err != nil {
		return nil, err
	}
	for r := range strings.SplitSeq(ranges, ",") {
		first, last, _ := strings.Cut(r, "-")
		last = cmp.Or(last, first)
		a, err1 := strconv.ParseUint(first, 10, 31)
		b, err2 := strconv.ParseUint(last, 10, 31)
		if err1 != nil || err2 != nil || b < a {
			return nil, wrong(http.StatusBadRequest, "hosts %.80q: want numbers and ranges in brackets", word)
		}
		if (b-a+1)*uint64(len(tails))+uint64(len(out)) > HostsMax {
			return nil, tooManyHosts()
		}
		for n := a; n <= b; n++ {
			for _, tail := range tails {
				out = append(out, fmt.Sprintf("%s%0*d%s", before, len(first), n, tail))
			}
		}
	}
	return out, nil
}

// hosts are the ports of the hosts with some names, as far as a tenant owns them, by
// name. A device says its name itself. So the ports of others do not count, and if two
// devices have the same description, neither does: then the error says that.
func hosts(s *resource.State, v *view, owner string, want []string) (map[string][]ib.PortGUID, error) {
	wanted := make(map[string]bool, len(want))
	for _, name := range want {
		wanted[name] = true
	}
	by := map[string]*observed.Node{}
	out := map[string][]ib.PortGUID{}
	for _, n := range v.fabric.Nodes {
		if n.Switch != nil || n.Contested {
			continue
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.Reached || s.Owner(p.GUID) != owner {
				continue
			}
			name := n.Description
			if !wanted[name] {
				name = names.Short(name)
			}
			if !wanted[name] {
				continue
			}
			if other := by[n.Description]; other != nil && other != n {
				return nil, wrong(http.StatusBadRequest, "host %.80q: two devices have this name, %v and %v", name, other.GUID(), n.GUID())
			}
			by[n.Description] = n
			out[name] = append(out[name], p.GUID)
		}
	}
	return out, nil
}

// addHosts answers POST resources/pkeys/hosts: as POST resources/pkeys with the ports of
// hosts, and with a job that is completed when the change is proved.
func (c *call) addHosts() (any, error) {
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	want, err := expandHosts(strings.Join(b.Hosts, ","))
	if err != nil {
		return nil, err
	}
	if len(want) == 0 {
		return nil, wrong(http.StatusBadRequest, "hosts_names: want names of hosts")
	}
	membership, err := parseMembership(string(b.Membership))
	if err != nil {
		return nil, err
	}
	a, err := b.amendment()
	if err != nil {
		return nil, err
	}
	v, err := c.view()
	if err != nil {
		return nil, err
	}
	var found map[string][]ib.PortGUID
	c.read(func(s *resource.State) {
		owner := c.by.Tenant
		if p := s.Partition(b.key); p != nil && c.by.IsProvider() {
			owner = p.Owner
		}
		found, err = hosts(s, v, owner, want)
	})
	if err != nil {
		return nil, err
	}
	for _, name := range want {
		if found[name] == nil {
			return nil, wrong(http.StatusBadRequest, "host %.80q: the caller has no such host on the fabric", name)
		}
		for _, g := range found[name] {
			a.Set = append(a.Set, resource.Member{Port: g, Membership: membership, Index0: b.Index0.or(false), Host: name})
		}
	}
	return c.start("add hosts to pkey "+keyText(b.key), a)
}

// deleteHosts answers DELETE resources/pkeys/{}/hosts/{}. A host may be gone from the
// fabric, or call itself something else by now: what counts is the name by which it was
// added, and for ports that were added otherwise the name that it has.
func (c *call) deleteHosts() (any, error) {
	k, err := parseKey(c.args[0])
	if err != nil {
		return nil, err
	}
	want, err := expandHosts(c.args[1])
	if err != nil {
		return nil, err
	}
	v, err := c.view()
	if err != nil {
		return nil, err
	}
	a := resource.AmendPartition{PKey: k, RemoveHosts: want, Empty: true}
	heard := map[string]bool{}
	c.read(func(s *resource.State) {
		for _, m := range s.Members(k) {
			if s.SeesMember(c.by, m) {
				heard[m.Host] = true
			}
		}
		for _, n := range v.fabric.Nodes {
			for i := range n.Ports {
				p := &n.Ports[i]
				if !p.Reached || n.Switch != nil || s.SightOf(c.by, p.GUID) == resource.SightNone {
					continue // a host of which the caller knows nothing is none
				}
				for _, name := range []string{n.Description, names.Short(n.Description)} {
					if _, is := slices.BinarySearch(want, name); !is {
						continue
					}
					heard[name] = true
					if m := s.Member(k, p.GUID); m != nil && m.Host == "" {
						a.Remove = append(a.Remove, p.GUID)
					}
				}
			}
		}
	})
	job, err := c.start("remove hosts from pkey "+keyText(k), a)
	if err != nil {
		return nil, err
	}
	for _, name := range want {
		if !heard[name] {
			return nil, wrong(http.StatusNotFound, "host %.80q: it is not on the fabric and was not added by this name; the others were removed", name)
		}
	}
	return job, nil
}

// job follows a change to its proof.
type job struct {
	id, tenant, operation string
	from                  time.Time
	revision              uint64
	done                  bool // nothing was to be changed
}

// jobs are kept in memory: a change is in the history, whether its job is or not.
type jobs struct {
	mu   sync.Mutex
	list []job // in the order of their beginning
}

// shownJob is a job as UFM shows it, in both spellings that clients read.
type shownJob struct {
	ID        string `json:"id"`
	UpperID   string `json:"ID"`
	Operation string `json:"operation"`
	Status    string `json:"status"`
	UpperStat string `json:"Status"`
	Summary   string `json:"summary,omitempty"`
	Created   string `json:"created"`
}

// start makes a change and a job for it, which is completed already if the proof comes
// in time.
func (c *call) start(operation string, change resource.Change) (any, error) {
	// Slurm's plugin asks for no job: it starts the user's program after this answer.
	result, err := c.change(change, c.options.Wait)
	if err != nil {
		return nil, err
	}
	j := job{randomName(), c.by.Tenant, operation, c.service.Now(), result.Revision, len(result.Keys) == 0}
	c.jobs.add(j)
	return c.shownJob(j), nil
}

func (l *jobs) add(j job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, x := range l.list {
		if x.tenant == j.tenant {
			count++
		}
	}
	l.list = slices.DeleteFunc(l.list, func(x job) bool {
		old := j.from.Sub(x.from) >= JobLife
		if !old && x.tenant == j.tenant && count >= JobsMax {
			old = true
			count--
		}
		return old
	})
	l.list = append(l.list, j)
}

// of are the jobs of a tenant.
func (l *jobs) of(tenant string) (list []job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.list {
		if j.tenant == tenant {
			list = append(list, j)
		}
	}
	return list
}

func (c *call) shownJob(j job) shownJob {
	status, summary := "Completed", ""
	if o := c.service.Outcome(j.revision); o != nil && !j.done {
		switch o.State {
		case service.Pending:
			status = "Running"
		case service.Failed, service.Refused:
			status, summary = "Failed", strings.Join(c.reasons(o), "; ")
		}
	}
	return shownJob{
		ID: j.id, UpperID: j.id, Operation: j.operation, Status: status, UpperStat: status,
		Summary: summary, Created: j.from.UTC().Format(time.RFC3339),
	}
}

// listJobs answers GET jobs.
func (c *call) listJobs() (any, error) {
	status, operation := c.query.Get("status"), c.query.Get("operation")
	out := []shownJob{}
	for _, j := range c.jobs.of(c.by.Tenant) {
		s := c.shownJob(j)
		if status != "" && !strings.EqualFold(status, s.Status) || operation != "" && !strings.HasPrefix(s.Operation, operation) {
			continue
		}
		out = append(out, s)
	}
	return out, nil
}

// getJob answers GET jobs/{}.
func (c *call) getJob() (any, error) {
	for _, j := range c.jobs.of(c.by.Tenant) {
		if j.id == c.args[0] {
			return c.shownJob(j), nil
		}
	}
	return nil, wrong(http.StatusNotFound, "job %.40q: there is none", c.args[0])
}

// deleteJob answers DELETE jobs/{}: the job is forgotten, and the change stays.
func (c *call) deleteJob() (any, error) {
	if _, err := c.getJob(); err != nil {
		return nil, err
	}
	c.jobs.mu.Lock()
	defer c.jobs.mu.Unlock()
	c.jobs.list = slices.DeleteFunc(c.jobs.list, func(j job) bool { return j.id == c.args[0] && j.tenant == c.by.Tenant })
	return nothing, nil
}
