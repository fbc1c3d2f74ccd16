package listen

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// TestHeaders: which revisions the headers name, and what is no header.
func TestHeaders(t *testing.T) {
	unseen := fmt.Sprintf(`"%d"`, uint64(resource.Unseen))
	for _, x := range []struct {
		match, none string
		want        string
		field       string // at fault
	}{
		{"", "", "{[] false [] false false}", ""},
		{`"7"`, "", "{[7] false [] false true}", ""},
		{` "7" , "8"`, "", "{[7 8] false [] false true}", ""},
		{`W/"7"`, "", "{[] false [] false true}", ""}, // a weak tag matches nothing
		{`"x"`, "", "{[] false [] false true}", ""},
		{unseen, "", "{[] false [] false true}", ""},
		{" * ", "", "{[] true [] false true}", ""},
		{"", `"7"`, "{[] false [7] false false}", ""},
		{"", `W/"7", "8"`, "{[] false [7 8] false false}", ""},
		{"", unseen, "{[] false [] false false}", ""},
		{"", "*", "{[] false [] true false}", ""},
		{`"7"`, "*", "{[7] false [] true true}", ""},
		{`""`, "", "{[] false [] false true}", ""},
		{"7", "", "", "header.If-Match"}, {`"7`, "", "", "header.If-Match"}, {`7"`, "", "", "header.If-Match"}, {`"`, "", "", "header.If-Match"}, {`*, "7"`, "", "", "header.If-Match"},
		{"", "7", "", "header.If-None-Match"}, {"", `"7",`, "", "header.If-None-Match"},
	} {
		c, err := ReadCondition(x.match, x.none)
		if x.field == "" {
			if got := fmt.Sprint(c); err != nil || got != x.want {
				t.Errorf("If-Match: %s, If-None-Match: %s: %s, %v; want %s", x.match, x.none, got, err, x.want)
			}
			continue
		}
		fault(t, err, 400, Malformed, x.field, `want * or ETags in quotation marks, such as "12"`)
	}
	if got := ETag(7); got != `"7"` {
		t.Errorf("the ETag of revision 7 is %s", got)
	}
}

// fault compares a problem.
func fault(t *testing.T, err error, status int, reason, field, detail string) {
	t.Helper()
	var p *Problem
	if !errors.As(err, &p) || p.Status != status || p.Reason != reason || len(p.Errors) != 1 || p.Errors[0].Field != field || p.Detail != detail {
		t.Errorf("%+v, want %d, %s, %s: %s", err, status, reason, field, detail)
	}
}

// TestConditions: every condition of one object that is there at a revision, or is not there.
func TestConditions(t *testing.T) {
	for _, x := range []struct {
		match, none string
		there       bool
		revision    uint64
		// holds and replaces are what is wrong; "" for nothing.
		holds, replaces string
		has             bool
	}{
		{"", "", true, 7, "", "unseen", false},
		{"", "", false, 0, "", "", false},
		{`"7"`, "", true, 7, "", "", false},
		{`"6","7"`, "", true, 7, "", "", false},
		{`"6"`, "", true, 7, "changed", "changed", false},
		{`"7"`, "", false, 0, "gone", "gone", false},
		{`"0"`, "", false, 0, "gone", "gone", false},
		{"*", "", true, 7, "", "", false},
		{"*", "", false, 0, "gone", "gone", false},
		{"", "*", true, 7, "there", "there", true},
		{"", "*", false, 0, "", "", true},
		{"", `"7"`, true, 7, "same", "unseen", true},
		{"", `"6"`, true, 7, "", "unseen", false},
		{"", `"0"`, false, 0, "", "", true},
		{`"7"`, `"7"`, true, 7, "same", "same", true},
		{`"7"`, "*", true, 7, "there", "there", true},
	} {
		c, err := ReadCondition(x.match, x.none)
		if err != nil {
			t.Fatal(err)
		}
		if c.Has(x.revision) != x.has {
			t.Errorf("If-None-Match: %s has revision %d: %v", x.none, x.revision, !x.has)
		}
		for want, err := range map[string]error{x.holds: c.Holds(x.there, x.revision), x.replaces + " replaces": c.Replaces(x.there, x.revision)} {
			switch want {
			case "", " replaces":
				if err != nil {
					t.Errorf("%+v: %v", x, err)
				}
			case "there", "there replaces":
				fault(t, err, 412, "stale", "header.If-None-Match", "it exists already, last changed in revision 7")
			case "gone", "gone replaces":
				fault(t, err, 412, "stale", "header.If-Match", "it does not exist")
			case "changed", "changed replaces":
				fault(t, err, 412, "stale", "header.If-Match", "it has changed: it is at revision 7 now")
			case "same", "same replaces":
				fault(t, err, 412, "stale", "header.If-None-Match", "it is at that revision")
			case "unseen replaces":
				fault(t, err, 428, Precondition, "header.If-Match", `it exists and would be replaced: read it, and give its ETag "7" as If-Match`)
			default:
				t.Errorf("%+v: %s", x, want)
			}
		}
	}
}
