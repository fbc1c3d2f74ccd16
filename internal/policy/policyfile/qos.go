package policyfile

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// qosLevels reads the shares of service levels.
func (r *yamlReader) qosLevels(node ast.Node) []policy.Level {
	levels := []policy.Level{}
	seen := map[ib.SL]policy.Pos{}
	for _, entry := range r.List(node, "qos_levels") {
		if r.Full() {
			break
		}
		var l policy.Level
		at, stated := YAMLPos(entry), false
		faults := len(r.Faults)
		r.Fields(entry, "an entry of qos_levels", map[string]func(ast.Node){
			"sl": func(v ast.Node) {
				l.SL, stated, at = ib.SL(r.Numeral(v, "sl", 0, policy.SLMax)), true, YAMLPos(v)
			},
			"share": func(v ast.Node) { l.Share = r.percent(v) },
		})
		if len(r.Faults) > faults {
			continue
		}
		if !stated || l.Share == 0 {
			r.Fault(at, "sl and share", "an incomplete entry of qos_levels")
			continue
		}
		if first, again := seen[l.SL]; again {
			r.Fault(at, "each level once", "SL %d again, as at %v", l.SL, first)
			continue
		}
		seen[l.SL] = at
		levels = append(levels, l)
	}
	if len(levels) == 0 && len(r.Faults) == 0 {
		r.Fault(YAMLPos(node), "at least one level", "qos_levels of nothing")
	}
	policy.SortLevels(levels)
	return levels
}

// percent reads a share of a link, with or without a percent sign.
func (r *yamlReader) percent(node ast.Node) uint8 {
	const want = "a share of a link from 1 to 100 %"
	t, ok := r.Scalar(node, "share", want)
	if !ok {
		return 0
	}
	v, octal, ok := policy.ParseNumber(strings.TrimSpace(strings.TrimSuffix(t.S, "%")))
	if !ok || octal || v == 0 || v > policy.ShareMax {
		r.Fault(t.Pos, want, "%q for share", t.S)
		return 0
	}
	return uint8(v)
}

// serviceIDs reads the service levels that a partition has for services.
func (r *yamlReader) serviceIDs(node ast.Node) (rules []policy.ServiceLevel) {
	for _, entry := range r.List(node, "service_ids") {
		if r.Full() {
			return rules
		}
		if len(rules) == policy.ServiceLevelsMax {
			r.Fault(YAMLPos(entry), "fewer", "more than %d service_ids in a partition", policy.ServiceLevelsMax)
			return rules
		}
		x := policy.ServiceLevel{Pos: YAMLPos(entry)}
		identified, leveled := false, false
		faults := len(r.Faults)
		r.Fields(entry, "an entry of service_ids", map[string]func(ast.Node){
			"id": func(v ast.Node) {
				t, ok := r.Scalar(v, "id", policy.ServiceIDWant)
				if !ok {
					return
				}
				var err error
				if x.First, x.Last, err = policy.ParseServiceIDs(t.S); err != nil {
					r.Fault(t.Pos, policy.ServiceIDWant, "%v for id", err)
				}
				x.Pos, identified = t.Pos, true
			},
			"sl": func(v ast.Node) { x.SL, leveled = ib.SL(r.Numeral(v, "sl", 0, policy.SLMax)), true },
		})
		if len(r.Faults) > faults {
			continue
		}
		if !identified || !leveled {
			r.Fault(x.Pos, "id and sl", "an incomplete entry of service_ids")
			continue
		}
		if i := policy.Covered(rules, x); i >= 0 {
			r.Fault(x.Pos, "service IDs that no earlier entry has", "%s, as at %v", policy.ServiceIDsText(x.First, x.Last), rules[i].Pos)
			continue
		}
		rules = append(rules, x)
	}
	return rules
}

// levelsText are the lines of settings about shares.
func levelsText(levels []policy.Level) string {
	var b strings.Builder
	b.WriteString("  qos_levels:\n")
	for _, l := range levels {
		fmt.Fprintf(&b, "    - {sl: %d, share: %d%%}\n", l.SL, l.Share)
	}
	return b.String()
}

// writePaths writes what a partition says of its paths.
func writePaths(w *bytes.Buffer, part *policy.Partition) {
	if part.RateLimit != 0 {
		fmt.Fprintf(w, "    rate_limit: %v\n", part.RateLimit)
	}
	if len(part.ServiceLevels) > 0 {
		w.WriteString("    service_ids:\n")
	}
	for _, x := range part.ServiceLevels {
		fmt.Fprintf(w, "      - {id: %s, sl: %d}\n", quote(policy.ServiceIDsText(x.First, x.Last)), x.SL)
	}
}
