package policyfile

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// apart reads the ports that nothing but their GUID means.
func (r *yamlReader) apart(node ast.Node) {
	const want = "a GUID with 0x, or two with - between them, the lower first"
	var ranges []policy.GUIDRange
	for i, item := range r.List(node, "apart") {
		if i == policy.MembersMax {
			r.Fault(YAMLPos(item), "fewer", "more than %d ranges", policy.MembersMax)
		}
		if r.Full() || i >= policy.MembersMax {
			return
		}
		t, ok := r.Scalar(item, "a GUID", want)
		if !ok {
			continue
		}
		low, high, isRange := strings.Cut(t.S, "-")
		if !isRange {
			high = low
		}
		first, err := ib.ParsePortGUID(strings.TrimSpace(low))
		last, err2 := ib.ParsePortGUID(strings.TrimSpace(high))
		if err != nil || err2 != nil || !strings.HasPrefix(low, "0x") || first == 0 || last < first {
			r.Fault(t.Pos, want, "%q", t.S)
			continue
		}
		ranges = append(ranges, policy.GUIDRange{First: first, Last: last})
	}
	r.policy.Apart = policy.Apart(ranges, nil)
}

func writeApart(w *bytes.Buffer, ranges []policy.GUIDRange) {
	if len(ranges) == 0 {
		return
	}
	w.WriteString("apart:\n")
	for _, x := range ranges {
		if x.First == x.Last {
			fmt.Fprintf(w, "  - %v\n", x.First)
		} else {
			fmt.Fprintf(w, "  - %v-%v\n", x.First, x.Last)
		}
	}
}
