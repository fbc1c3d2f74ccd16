package servicecmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

const (
	// topPage is how many rows are asked for at once, the most that the service gives; topKept how many events are kept.
	topPage = 1000
	topKept = 1000
	// topText is the width of a terminal that has room for texts, topMore for what is seldom wanted.
	topText, topMore = 100, 140
)

// source is a service for `ibwarden top`. It is asked one thing after the other.
type source struct {
	to     *client.Client
	status views.Status
	events []views.Event // the oldest first
}

// model is what `ibwarden top` shows.
func (s *source) model(interval time.Duration) *terminal.Model {
	return &terminal.Model{Interval: interval, Head: s.heading, Why: s.why, Tabs: []*terminal.View{
		{Name: "overview", Read: s.overview}, s.tenants(), s.hosts("hosts", "", nil), s.links(),
		s.counters("load", views.BySends), s.counters("errors", views.ByErrors), s.history(), s.waiting(), s.happened(),
	}}
}

// refusal is an error of a service that answered.
func refusal(err error) error {
	var p *api.Problem
	if errors.As(err, &p) {
		return &terminal.Refusal{Text: p.Detail, Forbidden: p.Status == http.StatusForbidden}
	}
	return err
}

func (s *source) heading(ctx context.Context) (h terminal.Heading, err error) {
	one, err := client.Whole[api.Single[views.Status]](ctx, s.to, "/status", nil)
	if err != nil {
		return h, err
	}
	s.status = one.Item
	h = terminal.Heading{Verdict: one.Item.Verdict, Good: one.Item.Holds, How: "proved", At: one.Item.ReadAt, Provider: one.Item.Fabric != nil}
	if at := one.Item.CheckedAt; at != nil {
		h.How, h.At = "checked", *at
	}
	if one.Old != "" {
		h.Rest = append(h.Rest, "may be old: "+one.Old)
	}
	if h.Provider {
		o := Overview{}
		o.Managers, err = client.All[views.SubnetManager](ctx, s.to, "/managers", nil)
		if !errors.As(refusal(err), new(*terminal.Refusal)) && err != nil {
			return h, err
		}
		for _, m := range o.masters() {
			h.Rest = append(h.Rest, "master "+m.Node)
		}
	}
	h.Rest = append(h.Rest, fmt.Sprintf("revision %d", one.Revision), "ibwarden "+one.Item.Version, s.to.Server())
	return h, nil
}

// list is a view of a list of the service.
func list[T any](s *source, name, path string, query url.Values, columns []terminal.Column, row func(T) terminal.Row) *terminal.View {
	return &terminal.View{Name: name, Title: name, Columns: columns, Read: func(ctx context.Context, cursor string) (terminal.Page, error) {
		return page(ctx, s, path, query, cursor, row)
	}}
}

func page[T any](ctx context.Context, s *source, path string, query url.Values, cursor string, row func(T) terminal.Row) (p terminal.Page, err error) {
	q := maps.Clone(query)
	if q == nil {
		q = url.Values{}
	}
	q.Set("limit", strconv.Itoa(topPage))
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	got, err := client.Whole[api.List[T]](ctx, s.to, path, q)
	for _, x := range got.Items {
		p.Rows = append(p.Rows, row(x))
	}
	p.Next = got.Next
	return p, refusal(err)
}

// textOf is the page of a text.
func textOf(b *bytes.Buffer) terminal.Page {
	return terminal.TextPage(strings.Split(strings.TrimRight(b.String(), "\n"), "\n"))
}

// overview is what is printed where the output is no terminal, without what the heading says.
func (s *source) overview(ctx context.Context, _ string) (terminal.Page, error) {
	x := screen{status: s.status, events: s.events}
	if err := x.fill(ctx, s.to); err != nil {
		return terminal.Page{}, refusal(err)
	}
	s.events = x.events
	var b bytes.Buffer
	err := x.printRest(&b)
	return textOf(&b), err
}

func (s *source) tenants() *terminal.View {
	return list(s, "tenants", "/tenants", nil, []terminal.Column{{Name: "tenant"}, {Name: "partitions", Right: true}, {Name: "ports", Right: true},
		{Name: "keys"}, {Name: "changed", Right: true}, {Name: "removals", Wide: topText}, {Name: "labels", Wide: topText},
	}, func(t api.Tenant) terminal.Row {
		removals, labels, keys := "at once", []string{}, ""
		if t.ApproveRemovals {
			removals = "approved by a second person"
		}
		for _, k := range slices.Sorted(maps.Keys(t.Labels)) {
			labels = append(labels, k+"="+t.Labels[k])
		}
		if t.Keys != nil {
			keys = fmt.Sprintf("%s-%s", t.Keys.First, t.Keys.Last)
		}
		return terminal.Row{ID: t.Name, Cells: []any{t.Name, t.Partitions, t.Ports, keys, t.Changed, removals, strings.Join(labels, " ")},
			Open: func() *terminal.View { return s.hosts(t.Name, t.Name, url.Values{"owner": {t.Name}}) }}
	})
}

// hosts are the end ports of a tenant, or all.
func (s *source) hosts(name, title string, query url.Values) *terminal.View {
	v := list(s, name, "/ports", query, []terminal.Column{{Name: "host"}, {Name: "port", Right: true}, {Name: "owner"}, {Name: "lid", Right: true}, {Name: "state"},
		{Name: "partitions"}, {Name: "guid", Wide: topText}, {Name: "switch", Wide: topMore}, {Name: "its port", Wide: topMore, Right: true},
	}, func(p views.Port) terminal.Row {
		r := terminal.Row{ID: p.GUID, Port: terminal.Port{GUID: p.GUID, Name: p.Node}, Open: func() *terminal.View { return s.host(terminal.Port{GUID: p.GUID, Name: p.Node}) }}
		if !p.Found {
			p.State, p.Node, r.Tone, r.Port.Name = "not found", p.GUID, terminal.Warn, p.GUID
		} else if p.State != "Active" {
			r.Tone = terminal.Warn
		}
		r.Cells = []any{p.Node, p.Number, p.Owner, p.LID, p.State, strings.Join(p.Partitions, " "), p.GUID, p.Switch, p.SwitchPort}
		return r
	})
	v.Title = title
	return v
}

// host is an end port: what it is, above whom it can talk with.
func (s *source) host(port terminal.Port) *terminal.View {
	v := &terminal.View{Title: port.Name, About: port, Columns: []terminal.Column{{Name: "can talk with"}, {Name: "lid", Right: true}, {Name: "talks"}, {Name: "over"}, {Name: "guid", Wide: topText}}}
	v.Read = func(ctx context.Context, cursor string) (terminal.Page, error) {
		p, err := page(ctx, s, "/peers", url.Values{"port": {port.GUID}}, cursor, func(x views.Peer) terminal.Row {
			talks, tone, over := "yes", terminal.TonePlain, []string{}
			if !x.Talks {
				talks, tone = "no", terminal.Warn
			}
			for _, o := range x.Over {
				words := o.PKey + " " + o.Name
				if o.There != o.Back {
					words += ": " + o.There + ", back " + o.Back
				} else if o.There != "delivered" {
					words += ": " + o.There
				}
				over = append(over, words)
			}
			peer := terminal.Port{GUID: x.GUID, Name: x.Name}
			return terminal.Row{ID: x.GUID, Port: peer, Tone: tone, Cells: []any{x.Name, x.LID, talks, strings.Join(over, ", "), x.GUID}, Open: func() *terminal.View { return s.host(peer) }}
		})
		if err == nil && cursor == "" {
			p.Head, err = s.describe(ctx, port.GUID)
		}
		return p, err
	}
	return v
}

// describe is what is known of an end port; a tenant is told of its own.
func (s *source) describe(ctx context.Context, guid string) (lines []string, err error) {
	one, _, err := client.Get[views.Port](ctx, s.to, "/ports/"+url.PathEscape(guid), nil)
	if err != nil {
		return lines, notThere(err)
	}
	var b bytes.Buffer
	printPort(&b, &one)
	lines = strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if !one.Found {
		return lines, nil
	}
	at, _, err := client.Get[views.PortDetails](ctx, s.to, fmt.Sprintf("/nodes/%s/ports/%d", url.PathEscape(one.NodeGUID), one.Number), nil)
	if err != nil {
		return lines, notThere(err)
	}
	keys := []string{}
	for _, k := range at.PKeys {
		keys = append(keys, strings.TrimSpace(k.PKey+" "+k.Partition)+" "+membership(k.Full))
	}
	if at.Peer != nil {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  cable to port %d of %s, %s %s", at.Peer.Port, at.Peer.Name, at.Width, at.Speed), ", "))
	}
	return append(lines, "  keys that it holds: "+strings.Join(keys, ", ")), nil
}

// notThere is an error but for one by which a service says that there is nothing to say.
func notThere(err error) error {
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	return refusal(err)
}

func (s *source) why(a, b terminal.Port) *terminal.View {
	return &terminal.View{Title: "why " + a.Name + ", " + b.Name, Read: func(ctx context.Context, _ string) (terminal.Page, error) {
		x, _, err := client.Get[views.Answer](ctx, s.to, "/why", url.Values{"from": {a.GUID}, "to": {b.GUID}})
		if err != nil {
			return terminal.Page{}, refusal(err)
		}
		var out bytes.Buffer
		fmt.Fprintf(&out, "%s to %s, as read at %s\n\n", x.From.Name, x.To.Name, x.ReadAt.UTC().Format(time.DateTime))
		err = PrintAnswer(&out, &x)
		return textOf(&out), err
	}}
}

func (s *source) links() *terminal.View {
	v := list(s, "links", "/links", nil, []terminal.Column{{Name: "from"}, {Name: "port", Right: true}, {Name: "to"}, {Name: "port", Right: true}, {Name: "width"}, {Name: "state"},
		{Name: "from guid", Wide: topText}, {Name: "to guid", Wide: topText},
	}, func(l views.Link) terminal.Row {
		r := terminal.Row{ID: fmt.Sprint(l.A.Node, l.A.Port), Cells: []any{l.A.Name, l.A.Port, l.B.Name, l.B.Port, l.Width, l.State, l.A.Node, l.B.Node}}
		if l.State != "Active" {
			r.Tone = terminal.Warn
		}
		return r
	})
	v.Provider = true
	return v
}

// rate is bytes a second.
type rate struct{ n *float64 }

func (r rate) String() string { return raw(r.n) }
func (r rate) Order() float64 {
	if r.n == nil {
		return -1
	}
	return *r.n
}

func (s *source) counters(name, order string) *terminal.View {
	v := list(s, name, "/counters", url.Values{"order": {order}}, []terminal.Column{{Name: "port"}, {Name: "to"}, {Name: "sends", Right: true}, {Name: "receives", Right: true},
		{Name: "errors", Right: true}, {Name: "read", Wide: topText}, {Name: "counters", Wide: topText},
	}, func(p views.PortCounters) terminal.Row {
		r := terminal.Row{ID: fmt.Sprint(p.Node, p.Port)}
		var counted []string
		for _, k := range slices.Sorted(maps.Keys(p.Counters)) {
			if p.Counters[k] > 0 && !strings.HasSuffix(k, "Data") && !strings.HasSuffix(k, "Pkts") {
				counted = append(counted, fmt.Sprintf("%s=%d", k, p.Counters[k]))
			}
		}
		if p.Errors > 0 {
			r.Tone = terminal.Warn
		}
		read := fmt.Sprintf("%.0fs ago", p.Age)
		if p.Fault != "" {
			read = p.Fault
		}
		r.Cells = []any{place(&p), p.Peer, rate{p.Sends}, rate{p.Receives}, p.Errors, read, strings.Join(counted, " ")}
		return r
	})
	v.Provider = true
	return v
}

func (s *source) history() *terminal.View {
	return list(s, "history", "/revisions", nil, []terminal.Column{{Name: "revision", Right: true}, {Name: "at"}, {Name: "by"}, {Name: "action"}, {Name: "outcome"}, {Name: "tenant", Wide: topText},
		{Name: "what", Wide: topText}, {Name: "because", Wide: topMore},
	}, func(r views.Revision) terminal.Row {
		outcome, tone := "", terminal.TonePlain
		if r.Outcome != nil {
			if outcome = r.Outcome.State; outcome != "proved" {
				tone = terminal.Warn
			}
		}
		return terminal.Row{ID: fmt.Sprint(r.Number), Tone: tone, Cells: []any{r.Number, r.At.UTC().Format(time.DateTime), r.By, r.Action, outcome, r.Tenant, strings.Join(r.Words, "; "), r.Why},
			Open: func() *terminal.View { return s.revision(r.Number) }}
	})
}

// revision is a change with what differs since.
func (s *source) revision(n uint64) *terminal.View {
	return &terminal.View{Title: fmt.Sprintf("revision %d", n), Read: func(ctx context.Context, _ string) (terminal.Page, error) {
		r, _, err := client.Get[views.Revision](ctx, s.to, fmt.Sprintf("/revisions/%d", n), nil)
		if err != nil {
			return terminal.Page{}, refusal(err)
		}
		var b bytes.Buffer
		printRevision(&b, &r)
		for _, e := range r.Edits {
			fmt.Fprintf(&b, "\n%s\n", e.Key)
			before, _ := e.Before.(map[string]any) // none is empty
			after, _ := e.After.(map[string]any)
			both := maps.Clone(before)
			if both == nil {
				both = map[string]any{}
			}
			maps.Copy(both, after)
			for _, k := range slices.Sorted(maps.Keys(both)) {
				old, is := inJSON(before, k), inJSON(after, k)
				if old != is && old != "" {
					fmt.Fprintf(&b, "  - %s: %s\n", k, old)
				}
				if old != is && is != "" {
					fmt.Fprintf(&b, "  + %s: %s\n", k, is)
				}
			}
		}
		p := textOf(&b)
		for i := range p.Rows {
			switch line, _ := p.Rows[i].Cells[0].(string); { // as textOf has it
			case strings.HasPrefix(line, "  - "):
				p.Rows[i].Tone = terminal.ToneBad
			case strings.HasPrefix(line, "  + "):
				p.Rows[i].Tone = terminal.Good
			}
		}
		return p, nil
	}}
}

// inJSON is a field, "" for none.
func inJSON(fields map[string]any, name string) string {
	value, some := fields[name]
	if !some {
		return ""
	}
	data, _ := json.Marshal(value) // it came as JSON
	return string(data)
}

func (s *source) waiting() *terminal.View {
	return list(s, "plans", "/approvals", nil, []terminal.Column{{Name: "plan"}, {Name: "until"}, {Name: "by"}, {Name: "tenant"}, {Name: "action"}, {Name: "what", Wide: topText}, {Name: "because", Wide: topMore}},
		func(a api.Approval) terminal.Row {
			var b bytes.Buffer
			printApproval(&b, &a)
			fmt.Fprintf(&b, "\nsomebody else than %s decides:\n  ibwarden approval approve %s\n  ibwarden approval reject %s\n", terminal.Plain(cmp.Or(a.From, a.By)), terminal.Plain(a.ID), terminal.Plain(a.ID))
			return terminal.Row{ID: a.ID, Cells: []any{a.ID, a.Expires.UTC().Format(time.DateTime), cmp.Or(a.From, a.By), a.Tenant, a.Action, strings.Join(a.Words, "; "), a.Why},
				Open: func() *terminal.View { return terminal.Text(a.ID, strings.Split(b.String(), "\n")) }}
		})
}

// happened are the last events, the newest first.
func (s *source) happened() *terminal.View {
	return &terminal.View{Name: "events", Columns: []terminal.Column{{Name: "at"}, {Name: "event"}}, Read: func(ctx context.Context, _ string) (p terminal.Page, err error) {
		if s.events, err = eventsSince(ctx, s.to, s.events, topKept); err != nil {
			return p, refusal(err)
		}
		for i, e := range slices.Backward(s.events) {
			words := eventWords(&s.events[i])
			lines := []string{e.At.UTC().Format(time.RFC3339), e.ID, words}
			p.Rows = append(p.Rows, terminal.Row{ID: e.ID, Cells: []any{e.At.UTC().Format(time.DateTime), words}, Open: func() *terminal.View { return terminal.Text("event", lines) }})
		}
		return p, nil
	}}
}
