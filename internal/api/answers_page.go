// answers*.go: is what the answers of the API have in common: one object or a page of a list,
// with the revision that was read, and what a write changed.

package api

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

// Limits of pages, in objects.
const (
	pageDefault = 100
	pageMost    = 1000
)

// PageParams choose a part of a list.
type PageParams struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"how many at most"`
	Cursor string `query:"cursor" maxLength:"256" doc:"where to go on: next of the page before"`
}

// cursorPrefix begins every cursor, so that a text that is none is found out.
const cursorPrefix = "1:"

// after is the key that the page begins after, "" for the first page.
func (p PageParams) after() (string, error) {
	if p.Cursor == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	key, good := strings.CutPrefix(string(b), cursorPrefix)
	if err != nil || !good {
		return "", listen.FieldProblem(http.StatusUnprocessableEntity, "invalid", "query.cursor", "want next of an earlier page")
	}
	return key, nil
}

// Numbered is the part of a numbered list, newest or oldest first, that the page begins
// with. done says that nothing is left.
func (p PageParams) Numbered(oldest bool, limit int) (r store.Range, done bool, err error) {
	r = store.Range{Newest: !oldest, Limit: limit, MayLack: true}
	after, err := p.after()
	if err != nil || after == "" {
		return r, false, err
	}
	n, err := strconv.ParseUint(after, 10, 64)
	if err != nil || n == 0 {
		return r, false, listen.FieldProblem(http.StatusUnprocessableEntity, "invalid", "query.cursor", "want next of an earlier page")
	}
	if r.From = n - 1; oldest {
		r.From = n + 1
	}
	return r, r.From == 0, nil
}

// Cursor is where a list goes on after a key.
func Cursor(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + key))
}

// Reading is what every answer to a read has.
type Reading struct {
	Revision uint64 `json:"revision" doc:"the revision that was read"`
	// PKey stands where the answers to writes have it.
	PKey string `json:"pkey,omitempty" doc:"number of the partition that was asked about, in answers about one"`
	// Old tells why what was read may be old.
	Old string `json:"old,omitempty" doc:"why this may be old: the store cannot be reached, or another manager writes it"`
}

// List is a page of a list.
type List[T any] struct {
	Reading
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"cursor of the next page; none on the last"`
}

// Output is an answer with an ETag.
type Output[T any] struct {
	ETag string `header:"ETag" doc:"the revision, for If-Match and If-None-Match"`
	Old  string `header:"Ibwarden-Old" doc:"why this may be old; none when it is not"`
	Body T
}

// Page cuts a page out of a list that is sorted by key.
func Page[T, V any](p PageParams, all []T, key func(T) string, view func(T) V) (items []V, next string, err error) {
	after, err := p.after()
	if err != nil {
		return nil, "", err
	}
	items = []V{}
	last := ""
	for _, x := range all {
		k := key(x)
		if k <= after {
			continue
		}
		if len(items) == p.Most() {
			return items, Cursor(last), nil
		}
		items = append(items, view(x))
		last = k
	}
	return items, "", nil
}

// Most is how many objects the page has at most.
func (p PageParams) Most() int {
	if p.Limit < 1 || p.Limit > pageMost {
		return pageDefault
	}
	return p.Limit
}

// Single is the answer about one object.
type Single[T any] struct {
	Reading
	Item T `json:"item"`
}

// Unmodified is the answer 304.
type Unmodified struct{ Header http.Header }

// Error implements error; GetStatus and GetHeaders say what is answered.
func (Unmodified) Error() string             { return "not modified" }
func (Unmodified) GetStatus() int            { return http.StatusNotModified }
func (u Unmodified) GetHeaders() http.Header { return u.Header }

// Aged says that what was read may be old.
func (o *Output[T]) Aged(c resource.Caller, r *Reading, old error) {
	if old != nil {
		r.Old = WhyOld(c, old)
		o.Old = OneLine(r.Old)
	}
}

// WhyOld says why what was read may be old. The store's words have its addresses, and revisions by
// the numbers of the provider.
func WhyOld(c resource.Caller, old error) string {
	if c.IsProvider() {
		return old.Error()
	}
	return "the store cannot be reached, or another manager writes it: this is what was read last"
}

// OneLine is a text that may stand in a header.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, text)
}
