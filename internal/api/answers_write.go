package api

import (
	"encoding/json"
	"net/http"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// Changed is the answer to a write.
type Changed struct {
	Revision uint64         `json:"revision" doc:"the revision that the change made; the last one when it changed nothing"`
	Words    []string       `json:"words" doc:"what it changed, in sentences"`
	Plan     *Plan          `json:"plan,omitempty" doc:"of a dry run: what would be written to the fabric"`
	Outcome  *views.Outcome `json:"outcome,omitempty" doc:"what became of the revision on the fabric so far"`
	Follow   string         `json:"follow,omitempty" doc:"the path of the revision, where its outcome will be"`
	Repeated bool           `json:"repeated,omitempty" doc:"an earlier request with the same Idempotency-Key did it"`
	Approval string         `json:"approval,omitempty" doc:"the change waits for a second person, as the approval with this ID: nothing else was changed"`
	PKey     string         `json:"pkey,omitempty" doc:"number of the partition that the write is about"`
}

// Plan is what a change would do to the fabric.
type Plan struct {
	Changes  bool   `json:"changes" doc:"whether anything would be written"`
	Ports    int    `json:"ports" doc:"ports whose keys or enforcement would change"`
	Sets     int    `json:"set" doc:"requests that write"`
	ReadBack int    `json:"read_back" doc:"requests that read back what was written"`
	Gained   int    `json:"gained" doc:"pairs of end ports that come to talk"`
	Lost     int    `json:"lost" doc:"pairs of end ports that cease to talk"`
	Text     string `json:"text,omitempty" doc:"as ibwarden plan prints it; for the provider"`
	// Document is not described further: docs/json.md does that.
	Document json.RawMessage `json:"document,omitempty" doc:"what ibwarden plan --json prints; for the provider"`
	Unread   int             `json:"unread,omitempty" doc:"places that could not be read, so that this may not be all; for the provider"`
}

// PlanOf is a plan as a caller sees it: it is for the whole fabric, so its words may be
// about others.
func PlanOf(p *service.Plan, c resource.Caller) *Plan {
	out := &Plan{}
	if v := p.Preview; v != nil {
		*out = Plan{Changes: v.Changes, Ports: len(v.Ports), Sets: v.SMPs.Set, ReadBack: v.SMPs.ReadBack, Gained: v.Reach.Gained, Lost: v.Reach.Lost}
	}
	if c.IsProvider() {
		out.Text, out.Document, out.Unread = p.Text, p.Document(), p.Unread
	}
	return out
}

// ChangedOutput is a Changed with its status: 202 while the outcome is pending, 201 for
// an object that was made and settled, else 200.
type ChangedOutput struct {
	Status   int
	Location string `header:"Location" doc:"the path of an object that was made"`
	ETag     string `header:"ETag" doc:"the ETag of the object after the change"`
	Body     Changed
}

// MadeBy is the object with a key that a change made; nil where it was there before.
func MadeBy(r *service.Result, key string) resource.Object {
	for _, e := range r.Edits {
		if e.Key == key && e.Before == nil {
			return e.After
		}
	}
	return nil
}

// Made adds where an object is that a write made.
func (o *ChangedOutput) Made(path string) *ChangedOutput {
	o.Location = path
	if o.Status == http.StatusOK {
		o.Status = http.StatusCreated
	}
	return o
}
