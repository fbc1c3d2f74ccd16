package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

func (a *api) partitions() {
	type listInput struct {
		PageParams
		Owner    string `query:"owner" maxLength:"40" doc:"those of this tenant"`
		Name     string `query:"name" maxLength:"40" doc:"those with this name"`
		Selector string `query:"selector" maxLength:"1024" doc:"those whose labels are so, as kubectl takes selectors: env=prod,team in (a, b),!old; labels that the caller does not see are none"`
	}
	register(a, operation(http.MethodGet, "/partitions", "list-partitions", "Partitions that the caller sees, by number"),
		func(ctx context.Context, in *listInput) (*Output[List[Partition]], error) {
			caller, resolved := callerOf(ctx), a.resolved(ctx)
			chosen, err := Selector(in.Selector)
			if err != nil {
				return nil, err
			}
			return readList(ctx, a, in.PageParams, func(s *resource.State) []*resource.Partition {
				all := s.Partitions(in.Owner)
				if in.Owner == "" || in.Owner == resource.Provider {
					all = append(all, DeclaredTo(s, caller)...)
				}
				slices.SortFunc(all, func(a, b *resource.Partition) int { return cmp.Compare(a.PKey, b.PKey) })
				return all
			}, func(p *resource.Partition) string { return p.PKey.String() }, func(s *resource.State, p *resource.Partition) bool {
				return (s.Partition(p.PKey) != p || s.Sees(caller, p.PKey)) && (in.Name == "" || p.Name == in.Name) && chosen.Chooses(p.LabelsFor(caller))
			}, func(s *resource.State, p *resource.Partition) Partition {
				if s.Partition(p.PKey) != p {
					return *DeclaredOf(s, caller, p.PKey, resolved)
				}
				return PartitionOf(s, caller, p)
			})
		})
	type one struct {
		PKey   PKey   `path:"pkey"`
		IfNone string `header:"If-None-Match" maxLength:"1000" doc:"ETag that the caller has"`
	}
	op := operation(http.MethodGet, "/partitions/{pkey}", "get-partition", "One partition")
	register(a, notModified(op), func(ctx context.Context, in *one) (*Output[Single[Partition]], error) {
		k, err := in.PKey.Base()
		if err != nil {
			return nil, err
		}
		resolved := a.resolved(ctx)
		return ofPKey[Partition](k)(readOne(ctx, a, in.IfNone, func(s *resource.State) (Partition, uint64, error) {
			if p := DeclaredOf(s, callerOf(ctx), k, resolved); p != nil {
				return *p, resource.Unseen, nil
			}
			p := s.Partition(k)
			if p == nil || !s.Sees(callerOf(ctx), k) {
				return Partition{}, 0, noPartition(k)
			}
			return PartitionOf(s, callerOf(ctx), p), s.TouchedFor(callerOf(ctx), k), nil
		}))
	})
	a.partitionWrites()
}

// resolved are the partitions of the policy file with the members that the manager has found; none for
// callers who see none, and before the first pass.
func (a *api) resolved(ctx context.Context) []observed.Partition {
	if !callerOf(ctx).IsProvider() || a.options.Judge == nil {
		return nil
	}
	list, _ := a.options.Judge.Allowed(ctx)
	return list
}

// ofPKey adds to an answer which partition it is about.
func ofPKey[V any](k ib.PKeyBase) func(*Output[Single[V]], error) (*Output[Single[V]], error) {
	return func(out *Output[Single[V]], err error) (*Output[Single[V]], error) {
		if out != nil {
			out.Body.PKey = k.String()
		}
		return out, err
	}
}

func (a *api) partitionWrites() {
	type create struct {
		WriteParams
		Body NewPartitionBody
	}
	register(a, operation(http.MethodPost, "/partitions", "create-partition", "Make a partition"),
		func(ctx context.Context, in *create) (*ChangedOutput, error) {
			var k ib.PKeyBase
			if in.Body.PKey != "" {
				var err error
				if k, err = in.Body.PKey.Base(); err != nil {
					return nil, err
				}
			}
			return a.putPartition(ctx, &in.WriteParams, k, in.Body.PartitionBody, true)
		})
	type put struct {
		WriteParams
		PKey PKey `path:"pkey"`
		Body PartitionBody
	}
	register(a, operation(http.MethodPut, "/partitions/{pkey}", "put-partition", "Make a partition with this number, or replace what is said of it"),
		func(ctx context.Context, in *put) (*ChangedOutput, error) {
			k, err := in.PKey.Base()
			if err != nil {
				return nil, err
			}
			return a.putPartition(ctx, &in.WriteParams, k, in.Body, false)
		})
	type remove struct {
		WriteParams
		PKey PKey `path:"pkey"`
	}
	register(a, operation(http.MethodDelete, "/partitions/{pkey}", "delete-partition", "Delete a partition with its members"),
		func(ctx context.Context, in *remove) (*ChangedOutput, error) {
			k, err := in.PKey.Base()
			if err != nil {
				return nil, err
			}
			r, err := a.do(ctx, &in.WriteParams, resource.DeletePartition{PKey: k}, a.narrowing(ctx, &in.WriteParams, k))
			if err != nil {
				return nil, err
			}
			return a.partitionChanged(callerOf(ctx), &in.WriteParams, k, r, a.changed(ctx, r, &in.WriteParams)), nil
		})
}

// putPartition makes or replaces a partition.
func (a *api) putPartition(ctx context.Context, w *WriteParams, k ib.PKeyBase, b PartitionBody, create bool) (*ChangedOutput, error) {
	change, err := b.Change(k)
	if err != nil {
		return nil, err
	}
	seen, err := w.condition()
	if err != nil {
		return nil, err
	}
	change.Create = create || seen.None
	caller := callerOf(ctx)
	r, err := a.do(ctx, w, change, func(s *resource.State) (uint64, error) {
		if p, _ := DeclaredAs(s, caller, k); p != nil {
			return resource.Unseen, nil // refused as one of the policy file
		}
		existed := s.Partition(k) != nil && s.Sees(caller, k)
		if k == 0 {
			return resource.Unseen, nil
		}
		check := seen.Replaces
		if create {
			check = seen.Holds
		}
		if err := check(existed, s.NumberFor(caller, s.TouchedFor(caller, k))); err != nil {
			return 0, err
		}
		if err := seen.Returning(s, caller, k, change.Members); err != nil {
			return 0, err
		}
		return s.Last(), nil
	})
	if err != nil {
		return nil, err
	}
	made := ""
	for _, key := range r.Keys {
		if _, is := cutPrefix(key, string(resource.KindPartition)+"/"); is {
			made = key
		}
	}
	if o, is := MadeBy(r, made).(*resource.Partition); is {
		k = o.PKey // also where none was asked for
	}
	out := a.partitionChanged(caller, w, k, r, a.changed(ctx, r, w))
	if MadeBy(r, made) != nil && !w.DryRun {
		out.Made(Prefix + "/partitions/" + out.Body.PKey)
	}
	return out, nil
}

// narrowing is the look before a write that takes something away from a partition.
// A caller who gave no revision need not have seen the last one.
func (a *api) narrowing(ctx context.Context, w *WriteParams, k ib.PKeyBase) look {
	return func(s *resource.State) (uint64, error) {
		c, err := w.condition()
		if err != nil {
			return 0, err
		}
		there := s.Sees(callerOf(ctx), k)
		if !c.Given && !c.None || !there {
			return resource.Unseen, nil // what is not there is refused as such
		}
		return s.Last(), c.Holds(there, s.NumberFor(callerOf(ctx), s.TouchedFor(callerOf(ctx), k)))
	}
}

func noPartition(k ib.PKeyBase) error {
	return fault(http.StatusNotFound, string(resource.NotFound), "pkey", "no partition "+k.String())
}
