package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/test/need"
)

// inForce is the text of the policy file that a service shows.
func inForce(s *Service) (text string) {
	_ = s.Read(func(r *resource.State) {
		if f := r.File(); f != nil {
			text = f.Text
		}
	})
	return text
}

// TestAFileOfASharedStore: --policy of a manager that is not master yet waits until it is,
// and is no change to a store that has a file: the same one is in force already, and
// another one is an error that names both.
func TestAFileOfASharedStore(t *testing.T) {
	s, _ := aged(t, true)
	s.beginLead()
	first := resource.File{Name: "first.yaml", Text: "version: 1\ndefault: limited\npartitions:\n- name: one\n  pkey: 0x10\n"}
	if err := s.ApplyFile(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if inForce(s) != "" {
		t.Fatal("a standby applied a file")
	}
	s.isMaster(true)
	need.Eventually(t, need.Patience, "the master applies the file", func() bool { return inForce(s) == first.Text })
	s.isMaster(false)
	need.Eventually(t, need.Patience, "it is no longer the writer", func() bool {
		return errors.Is(s.Read(func(*resource.State) {}), service.ErrNotMaster)
	})
	if err := s.ApplyFile(t.Context(), first); err != nil {
		t.Errorf("the same file: %v", err)
	}
	other := resource.File{Name: "other.yaml", Text: "version: 1\ndefault: limited\npartitions:\n- name: two\n  pkey: 0x11\n"}
	if err := s.ApplyFile(t.Context(), other); err == nil || !strings.Contains(err.Error(), "first.yaml") || !strings.Contains(err.Error(), "other.yaml") {
		t.Errorf("another file: %v: want both names", err)
	}
	s.isMaster(true)
	need.Eventually(t, need.Patience, "it is the writer again", s.writes)
	if now, err := s.store.Load(t.Context()); err != nil || now.Revision != 1 || inForce(s) != first.Text {
		t.Errorf("revision %d, %q, %v: want that of the first file", now.Revision, inForce(s), err)
	}
}
