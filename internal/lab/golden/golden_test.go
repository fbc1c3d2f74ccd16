package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStory(t *testing.T) {
	of := func(words ...string) *Story {
		s := &Story{}
		for _, w := range words {
			what, follows, _ := strings.Cut(w, "=")
			s.Add(what, follows)
		}
		return s
	}
	file := filepath.Join(t.TempDir(), "dir", "story.txt")
	for _, x := range []struct {
		was, is *Story
		fault   string
	}{
		{of(), of(), ""},
		{of("a=1", "b=2"), of("a=1", "b=2"), ""},
		{of("a=1", "b=2"), of("a=1", "b=3"), `2: the file has "d4735e3a b", the step is "4e074085 b", from which follows` + "\n3"},
		{of("a=1", "b=2"), of("a=1", "c=2"), `2: the file has "d4735e3a b", the step is "d4735e3a c", from which follows` + "\n2"},
		{of("a=1", "b=2"), of("a=1"), `2: the file has "d4735e3a b", and there is no such step`},
		{of("a=1"), of("a=1", "b=2"), `2: the file ends before the step "b"`},
		{of(), of("b=2"), `1: the file ends before the step "b"`},
	} {
		if err := x.was.write(file); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.is.differs(string(data)); got != x.fault {
			t.Errorf("%q beside %v: %s, want %s", data, x.is, got, x.fault)
		}
	}
}
