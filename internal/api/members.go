package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

func (a *api) members() {
	type listInput struct {
		PageParams
		PKey  PKey   `path:"pkey"`
		State string `query:"state" enum:"member,waiting" doc:"those in this state"`
	}
	register(a, operation(http.MethodGet, "/partitions/{pkey}/members", "list-members", "Members of a partition that the caller sees, by GUID"),
		func(ctx context.Context, in *listInput) (*Output[List[Member]], error) {
			k, err := in.PKey.Base()
			if err != nil {
				return nil, err
			}
			caller, resolved := callerOf(ctx), a.resolved(ctx)
			seen, revision, file := false, uint64(0), false
			out, err := readList(ctx, a, in.PageParams, func(s *resource.State) []*resource.Member {
				if p, _ := DeclaredAs(s, caller, k); p != nil {
					seen, file = true, true
					return DeclaredMembers(s, caller, k, resolved)
				}
				seen, revision = s.Sees(caller, k), s.NumberFor(caller, s.TouchedFor(caller, k))
				return s.Members(k)
			}, func(m *resource.Member) string { return m.Port.String() }, func(s *resource.State, m *resource.Member) bool {
				return (file || s.SeesMember(caller, m)) && (in.State == "" || m.Agreed() == (in.State == "member"))
			}, func(s *resource.State, m *resource.Member) Member { return MemberOf(s, caller, m) })
			if err == nil && !seen {
				return nil, noPartition(k)
			}
			if err == nil {
				if out.Body.PKey = k.String(); !file {
					out.ETag = listen.ETag(revision)
				}
			}
			return out, err
		})
	type one struct {
		PKey   PKey   `path:"pkey"`
		Port   GUID   `path:"guid"`
		IfNone string `header:"If-None-Match" maxLength:"1000" doc:"ETag that the caller has"`
	}
	op := operation(http.MethodGet, "/partitions/{pkey}/members/{guid}", "get-member", "One member of a partition")
	register(a, notModified(op), func(ctx context.Context, in *one) (*Output[Single[Member]], error) {
		k, g, err := memberParams(in.PKey, in.Port)
		if err != nil {
			return nil, err
		}
		caller, resolved := callerOf(ctx), a.resolved(ctx)
		return ofPKey[Member](k)(readOne(ctx, a, in.IfNone, func(s *resource.State) (Member, uint64, error) {
			for _, m := range DeclaredMembers(s, caller, k, resolved) {
				if m.Port == g {
					return MemberOf(s, caller, m), resource.Unseen, nil
				}
			}
			if p, _ := DeclaredAs(s, caller, k); p == nil && !s.Sees(caller, k) {
				return Member{}, 0, noPartition(k)
			}
			m := s.Member(k, g)
			if m == nil || !s.SeesMember(caller, m) {
				return Member{}, 0, fault(http.StatusNotFound, string(resource.NotFound), "port", g.String()+" is no member of "+k.String())
			}
			return MemberOf(s, caller, m), s.TouchedFor(caller, k), nil
		}))
	})
	a.memberWrites()
}

func memberParams(k PKey, g GUID) (ib.PKeyBase, ib.PortGUID, error) {
	base, err := k.Base()
	if err != nil {
		return 0, 0, err
	}
	port, err := g.Port()
	return base, port, err
}

func (a *api) memberWrites() {
	type add struct {
		WriteParams
		PKey PKey `path:"pkey"`
		Body MembersBody
	}
	register(a, operation(http.MethodPost, "/partitions/{pkey}/members", "add-members", "Add members, or change them; all or none"),
		func(ctx context.Context, in *add) (*ChangedOutput, error) {
			return a.setMembers(ctx, &in.WriteParams, in.PKey, in.Body.Members, false)
		})
	register(a, operation(http.MethodPut, "/partitions/{pkey}/members", "put-members", "Replace the list of members; needs If-Match"),
		func(ctx context.Context, in *add) (*ChangedOutput, error) {
			return a.setMembers(ctx, &in.WriteParams, in.PKey, in.Body.Members, true)
		})
	type put struct {
		WriteParams
		PKey PKey `path:"pkey"`
		Port GUID `path:"guid"`
		Body MembershipBody
	}
	register(a, operation(http.MethodPut, "/partitions/{pkey}/members/{guid}", "put-member", "Add one member, or change it"),
		func(ctx context.Context, in *put) (*ChangedOutput, error) {
			return a.setMembers(ctx, &in.WriteParams, in.PKey, []Joined{{Port: in.Port, MembershipBody: in.Body}}, false)
		})
	type remove struct {
		WriteParams
		PKey PKey `path:"pkey"`
		Port GUID `path:"guid"`
	}
	register(a, operation(http.MethodDelete, "/partitions/{pkey}/members/{guid}", "delete-member", "Remove one member"),
		func(ctx context.Context, in *remove) (*ChangedOutput, error) {
			return a.removeMembers(ctx, &in.WriteParams, in.PKey, []GUID{in.Port})
		})
	type decline struct {
		WriteParams
		PKey PKey `path:"pkey"`
		Port GUID `path:"guid"`
	}
	register(a, operation(http.MethodPost, "/partitions/{pkey}/members/{guid}/refuse", "refuse-member", "Decline what the other owner asks for; what both agreed to before stays"),
		func(ctx context.Context, in *decline) (*ChangedOutput, error) {
			k, g, err := memberParams(in.PKey, in.Port)
			if err != nil {
				return nil, err
			}
			r, err := a.do(ctx, &in.WriteParams, resource.Refuse{PKey: k, Port: g}, a.narrowing(ctx, &in.WriteParams, k))
			if err != nil {
				return nil, err
			}
			return a.partitionChanged(callerOf(ctx), &in.WriteParams, k, r, a.changed(ctx, r, &in.WriteParams)), nil
		})
	type removeMany struct {
		WriteParams
		PKey PKey   `path:"pkey"`
		Port []GUID `query:"port" required:"true" minItems:"1" maxItems:"400" doc:"GUIDs of the ports to remove"`
	}
	register(a, operation(http.MethodDelete, "/partitions/{pkey}/members", "delete-members", "Remove members; a port that is none is passed over"),
		func(ctx context.Context, in *removeMany) (*ChangedOutput, error) {
			return a.removeMembers(ctx, &in.WriteParams, in.PKey, in.Port)
		})
}

func (a *api) setMembers(ctx context.Context, w *WriteParams, pkey PKey, joined []Joined, all bool) (*ChangedOutput, error) {
	k, err := pkey.Base()
	if err != nil {
		return nil, err
	}
	members, err := Members(joined)
	if err != nil {
		return nil, err
	}
	before, err := a.joining(ctx, w, k, members, all)
	if err != nil {
		return nil, err
	}
	r, err := a.do(ctx, w, resource.SetMembers{PKey: k, Members: members, All: all}, before)
	if err != nil {
		return nil, err
	}
	return a.partitionChanged(callerOf(ctx), w, k, r, a.changed(ctx, r, w)), nil
}

// joining is the look before a write that adds members, or replaces the whole list of them.
func (a *api) joining(ctx context.Context, w *WriteParams, k ib.PKeyBase, members []resource.Member, all bool) (look, error) {
	seen, err := w.condition()
	caller, check := callerOf(ctx), seen.Holds
	if all {
		check = seen.Replaces
	}
	return func(s *resource.State) (uint64, error) {
		if !s.Sees(caller, k) {
			return resource.Unseen, nil // refused as what is not there
		}
		if err := check(true, s.NumberFor(caller, s.TouchedFor(caller, k))); err != nil {
			return 0, err
		}
		return s.Last(), seen.Returning(s, caller, k, members)
	}, err
}

func (a *api) removeMembers(ctx context.Context, w *WriteParams, pkey PKey, guids []GUID) (*ChangedOutput, error) {
	k, err := pkey.Base()
	if err != nil {
		return nil, err
	}
	list, err := Ports(guids)
	if err != nil {
		return nil, err
	}
	r, err := a.do(ctx, w, resource.RemoveMembers{PKey: k, Ports: list}, a.narrowing(ctx, w, k))
	if err != nil {
		return nil, err
	}
	return a.partitionChanged(callerOf(ctx), w, k, r, a.changed(ctx, r, w)), nil
}

// partitionChanged adds the partition that a write is about, and the ETag that it has after a
// change, if that change is the last one.
func (a *api) partitionChanged(c resource.Caller, w *WriteParams, k ib.PKeyBase, r *service.Result, out *ChangedOutput) *ChangedOutput {
	out.Body.PKey = k.String()
	if out.ETag != "" || gone(r, resource.PartitionKey(k)) {
		return out
	}
	if r.Repeated && slices.ContainsFunc(r.Keys, func(key string) bool { return ofPartition(key, k) }) {
		out.ETag = listen.ETag(out.Body.Revision)
		return out
	}
	a.service.Read(func(s *resource.State) {
		if touched := s.TouchedFor(c, k); !w.DryRun && touched > 0 && touched <= r.Revision {
			out.ETag = listen.ETag(s.NumberFor(c, touched))
		}
	})
	return out
}

// gone reports whether a change deleted the object with a key.
func gone(r *service.Result, key string) bool {
	return slices.ContainsFunc(r.Edits, func(e resource.Edit) bool { return e.Key == key && e.After == nil })
}

// ofPartition reports whether the object with a key is a partition, or in it.
func ofPartition(key string, k ib.PKeyBase) bool {
	return key == resource.PartitionKey(k) || strings.HasPrefix(key, string(resource.KindMember)+"/"+k.String()+"/") || strings.HasPrefix(key, string(resource.KindRemoved)+"/"+k.String()+"/")
}
