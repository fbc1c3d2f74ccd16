package ufm

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// Headers of the answer to a change.
const (
	headRevision = "Ibwarden-Revision" // the number of the last revision with it
	headState    = "Ibwarden-State"    // what became of it so far, a service.OutcomeState
)

// do has the service make a change and waits for its proof. A client that goes away
// does not stop it half way.
func (c *call) do(change resource.Change) (*service.Result, error) {
	result, err := c.change(change, c.options.Wait)
	if err != nil {
		return nil, err
	}
	if len(result.Keys) == 0 {
		return result, nil
	}
	state := service.Pending
	var reasons []string
	if o := result.Outcome; o != nil {
		state, reasons = o.State, c.reasons(o)
	}
	switch {
	case state == service.Refused:
		return nil, wrong(http.StatusConflict, "the fabric cannot take the change of revision %d, and it was undone: %s", c.number(result.Revision), strings.Join(reasons, "; "))
	case state != service.Proved && c.options.Strict:
		return nil, wrong(http.StatusServiceUnavailable, "the change is stored in revision %d and not proved on the fabric: %s %s",
			c.number(result.Revision), state, strings.Join(reasons, "; "))
	}
	return result, nil
}

// change has the service make a change and waits for its outcome as long as it is told.
func (c *call) change(change resource.Change, wait time.Duration) (*service.Result, error) {
	limit := wait
	if wait <= 0 {
		limit = commitTimeout
	}
	if c.asked(change) {
		return nil, errWaits
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), limit)
	defer cancel()
	result, err := c.service.Do(ctx, service.Request{
		Change: change, By: c.by, Seen: resource.Unseen, ID: c.id, Why: why, Wait: wait > 0,
	})
	if errors.Is(err, context.DeadlineExceeded) && result != nil {
		err = nil // it is stored, and its proof takes longer
	}
	if err != nil {
		return nil, err
	}
	if waits(result.Keys) {
		return nil, errWaits
	}
	c.head.Set(headRevision, strconv.FormatUint(c.number(result.Revision), 10))
	// Where nothing was to be changed, the outcome is that of somebody else's change.
	if len(result.Keys) > 0 && result.Outcome != nil {
		c.head.Set(headState, string(result.Outcome.State))
	}
	return result, nil
}

// number is that by which the caller knows a revision.
func (c *call) number(revision uint64) (n uint64) {
	c.service.Read(func(s *resource.State) { n = s.NumberFor(c.by, revision) })
	return n
}

// why is the reason that the history has for changes.
const why = "by a call of UFM"

// waits reports whether a change was not made, and an approval is wanted for it.
func waits(keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, string(resource.KindApproval)+"/") })
}

// errWaits answers a change that was not made, since it takes something away.
var errWaits = wrong(http.StatusConflict, "nothing was changed: what this takes away waits for the approval of a second person")

// asked reports whether the very change waits already: clients repeat what was refused.
func (c *call) asked(change resource.Change) (is bool) {
	c.read(func(s *resource.State) {
		if t := s.Tenant(c.by.Tenant); t == nil || !t.ApproveRemovals {
			return
		}
		data, err := resource.EncodeChange(change)
		is = err == nil && slices.ContainsFunc(s.Approvals(), func(a *resource.Approval) bool {
			return a.Tenant == c.by.Tenant && a.By == c.by.Name && c.service.Now().Before(a.Expires) && bytes.Equal(a.Change, data)
		})
	})
	return is
}

// reasons are those of an outcome that the caller may read: they name ports and
// partitions of others.
func (c *call) reasons(o *service.Outcome) []string {
	if all(c.by) {
		return o.Reasons
	}
	return []string{"the provider can see why"}
}

// made is the partition that a call makes where there is none: what the body does not
// say is as UFM has it.
func (b *body) made() (*resource.Partition, error) {
	mtu, sl, rate, err := b.qos()
	if err != nil {
		return nil, err
	}
	p := &resource.Partition{Name: b.name(), IPoIB: b.IPoIB.or(true), MTU: ib.MTU2048, Rate: rateUnlimited}
	if mtu != nil {
		p.MTU = *mtu
	}
	if sl != nil {
		p.SL = *sl
	}
	if rate != nil {
		p.Rate = *rate
	}
	return p, nil
}

// rateUnlimited is UFM's rate_limit of a partition of which nothing is said: 2.5 Gb/s,
// the rate of which every port is capable.
const rateUnlimited ib.Rate = 2

// amendment is the change that a body asks for, without members.
func (b *body) amendment() (a resource.AmendPartition, err error) {
	a.PKey, a.Name, a.IPoIB = b.key, string(b.Name), b.IPoIB.pointer()
	if a.Make, err = b.made(); err != nil {
		return a, err
	}
	a.MTU, a.SL, a.Rate, err = b.qos()
	return a, err
}

// addGUIDs answers POST resources/pkeys: it adds members, and makes the partition.
func (c *call) addGUIDs() (any, error) { return c.put(false) }

// setGUIDs answers PUT resources/pkeys: the members are then exactly those of the body.
func (c *call) setGUIDs() (any, error) { return c.put(true) }

func (c *call) put(all bool) (any, error) {
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	a, err := b.amendment()
	if err != nil {
		return nil, err
	}
	if a.Set, err = b.members(); err != nil {
		return nil, err
	}
	if a.All = all; len(a.Set) == 0 && (!all || b.GUIDs == nil) {
		return nil, wrong(http.StatusBadRequest, "guids: want a list of GUIDs")
	}
	_, err = c.do(a)
	return nothing, err
}

// createPKey answers POST resources/pkeys/add: it makes a partition without members.
func (c *call) createPKey() (any, error) {
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	p, err := b.made()
	if err != nil {
		return nil, err
	}
	p.PKey = b.key
	_, err = c.do(resource.PutPartition{Partition: *p, Create: true})
	return nothing, err
}

// deleteGUIDs answers DELETE resources/pkeys/{}/guids/{}.
func (c *call) deleteGUIDs() (any, error) {
	k, err := parseKey(c.args[0])
	if err != nil {
		return nil, err
	}
	guids, err := parseGUIDs(splitWords(c.args[1]))
	if err != nil {
		return nil, err
	}
	if len(guids) == 0 {
		return nil, wrong(http.StatusBadRequest, "want GUIDs after guids/")
	}
	_, err = c.do(resource.AmendPartition{PKey: k, Remove: guids, Empty: true})
	return nothing, err
}

// removeGUIDs answers POST actions/remove_guids_from_pkey: also where nothing is to be
// removed.
func (c *call) removeGUIDs() (any, error) {
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	guids, err := parseGUIDs(b.GUIDs)
	if err != nil {
		return nil, err
	}
	_, err = c.do(resource.AmendPartition{PKey: b.key, Remove: guids, Empty: true})
	var r *resource.Refusal
	if errors.As(err, &r) && r.Reason == resource.NotFound {
		return nothing, nil
	}
	return nothing, err
}

// deletePKey answers DELETE resources/pkeys/{}.
func (c *call) deletePKey() (any, error) {
	k, err := parseKey(c.args[0])
	if err != nil {
		return nil, err
	}
	_, err = c.do(resource.DeletePartition{PKey: k})
	var r *resource.Refusal
	if errors.As(err, &r) && k == ib.PKeyBaseDefault {
		return nil, wrong(http.StatusBadRequest, "pkey 0x7fff: the default partition cannot be deleted")
	}
	return nothing, err
}

// setQoS answers PUT and POST resources/pkeys/qos_conf.
func (c *call) setQoS() (any, error) {
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	a := resource.AmendPartition{PKey: b.key}
	if a.MTU, a.SL, a.Rate, err = b.qos(); err != nil {
		return nil, err
	}
	_, err = c.do(a)
	return nothing, err
}
