package names

import (
	"slices"
	"strings"
	"testing"
)

func TestFits(t *testing.T) {
	for _, x := range []struct {
		name, description string
		want              bool
	}{
		{"red-1 HCA-1", "red-1 HCA-1", true}, {"red-1", "red-1 HCA-1", true}, {"leaf-1", "leaf-1", true},
		{"red", "red-1 HCA-1", false}, {"HCA-1", "red-1 HCA-1", false}, {"", "", false}, {"", " HCA-1", false},
		{"red-1 ", "red-1 HCA-1", false}, {"RED-1", "red-1 HCA-1", false},
	} {
		if got := Fits(x.name, x.description); got != x.want {
			t.Errorf("%q for %q: %v, want %v", x.name, x.description, got, x.want)
		}
	}
}

func TestOne(t *testing.T) {
	all := []string{"red-1 HCA-1", "red-1 HCA-2", "red-2 HCA-1", "red-2", "blue-1 HCA-1", ""}
	for name, want := range map[string][]int{
		"red-1": {0, 1}, "red-1 HCA-2": {1}, "red-2": {3}, "blue-1": {4}, "blue": nil, "": nil,
	} {
		if got := One(name, all); !slices.Equal(got, want) {
			t.Errorf("%q may be %v, want %v", name, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	all := []string{"", "leaf-1", "leaf-2", "red-1 HCA-1", "blue-1 HCA-1", "storage-1 HCA-1"}
	for name, want := range map[string]string{
		"red-l": "red-1 HCA-1", "RED-1": "red-1 HCA-1", "rde-1": "red-1 HCA-1", "red": "red-1 HCA-1", "blue-1 HCA-2": "blue-1 HCA-1",
		"laef-2": "leaf-2", "storag": "storage-1 HCA-1", "storage-11": "storage-1 HCA-1",
		"purple": "", "x": "", "": "", strings.Repeat("a", lengthMax+1): "",
	} {
		got, ok := Nearest(name, all)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", name, got, ok, want)
		}
	}
	if got := DidYouMean("red-l", all); got != "; did you mean 'red-1 HCA-1'?" {
		t.Errorf("got %q", got)
	}
	if got := DidYouMean("purple", all); got != "" {
		t.Errorf("got %q", got)
	}
}
