package etcd

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
)

// TestFollower: a reader hears of what was written since, and of a commit of many objects
// all or nothing, at any moment; what a fenced writer sends is never there.
func TestFollower(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	place := c.place(t)
	s, reader := place.Open(t).(*Store), place.Open(t).(*Store)
	defer s.Close()
	defer reader.Close()
	epoch, err := s.Acquire(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	write := func(value string, keys ...string) {
		t.Helper()
		var puts []store.Object
		for _, k := range keys {
			puts = append(puts, store.Object{Key: k, Value: []byte(value)})
		}
		if _, err := s.Commit(t.Context(), store.Commit{Epoch: epoch, Puts: puts}); err != nil {
			t.Fatal(err)
		}
	}
	var mark store.Mark
	read := func() (out string) {
		t.Helper()
		list, at, err := reader.Objects(t.Context(), "manager/", mark)
		if err != nil {
			t.Fatal(err)
		}
		mark = at
		for _, o := range list {
			out += fmt.Sprintf("%s=%s ", o.Key, o.Value)
		}
		return out
	}
	expect := func(what, want string) {
		t.Helper()
		if got := read(); got != want {
			t.Fatalf("%s: %q, want %q", what, got, want)
		}
	}
	expect("an empty store", "")
	write("1", "manager/a", "manager/b", "other")
	expect("the first", "manager/a=1 manager/b=1 ")
	expect("nothing since", "")
	write("2", "other")
	expect("something else", "")
	write("2", "manager/b")
	expect("a change", "manager/b=2 ")

	// More objects than a transaction takes: written in parts, and then to their keys.
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("manager/many/%03d", i))
	}
	write("0", many...)
	read()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 5 {
			write(fmt.Sprint(i+1), many...)
		}
	}()
	reads := 0
	for over := false; !over; reads++ {
		select {
		case <-done:
			over = true
		default:
		}
		list, _, err := reader.Objects(t.Context(), "manager/many/", 0)
		if err != nil || len(list) != len(many) {
			t.Fatalf("%d objects, %v", len(list), err)
		}
		for _, o := range list {
			if string(o.Value) != string(list[0].Value) {
				t.Fatalf("%s is of commit %s, and %s of commit %s", o.Key, o.Value, list[0].Key, list[0].Value)
			}
		}
	}
	read()
	t.Logf("%d readings meanwhile", reads)

	if c, err := reader.Load(t.Context()); err != nil || len(c.Objects) != 1 || c.Objects[0].Key != "other" {
		t.Fatalf("Load: %v, %v: want only the object that is not kept apart", c.Objects, err)
	}

	woken := make(chan struct{})
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), startWait)
		defer cancel()
		for list := []store.Object(nil); len(list) == 0 && ctx.Err() == nil; {
			reader.Await(ctx, mark)
			list, _, _ = reader.Objects(ctx, "manager/", mark) // an error ends with ctx
		}
		close(woken)
	}()
	time.Sleep(10 * time.Millisecond)
	write("3", "manager/a")
	select {
	case <-woken:
	case <-time.After(startWait):
		t.Fatal("a commit wakes nobody")
	}
	read()
	next := place.Open(t).(*Store)
	defer next.Close()
	if _, err := next.Acquire(t.Context(), "next"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Commit(t.Context(), store.Commit{Epoch: epoch, Puts: []store.Object{{Key: "manager/a", Value: []byte("late")}}})
	fails(t, "a commit of who was fenced", err, store.ErrFenced)
	expect("after it", "")
}
