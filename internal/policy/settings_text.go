package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// ParseArbitration reads an arbitration table as OpenSM writes it: LANE:WEIGHT,
// parted by commas; the empty text is an empty table.
func ParseArbitration(text string) (table []smp.VLArbitrationEntry, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		lane, weight, _ := strings.Cut(strings.TrimSpace(entry), ":")
		vl, err := strconv.ParseUint(lane, 10, 4)
		w, err2 := strconv.ParseUint(weight, 10, 8)
		if err != nil || err2 != nil || ib.VL(vl) >= ib.VLManagement {
			return nil, fmt.Errorf("%q, want VL:WEIGHT with a VL of 0 to 14 and a weight of 0 to 255", strings.TrimSpace(entry))
		}
		table = append(table, smp.VLArbitrationEntry{VL: ib.VL(vl), Weight: uint8(w)})
	}
	if len(table) > smp.VLArbitrationMax {
		return nil, fmt.Errorf("%d entries, want at most %d", len(table), smp.VLArbitrationMax)
	}
	return table, nil
}

// ArbitrationText is the inverse of ParseArbitration.
func ArbitrationText(table []smp.VLArbitrationEntry) string {
	entries := make([]string, len(table))
	for i, e := range table {
		entries[i] = fmt.Sprintf("%d:%d", e.VL, e.Weight)
	}
	return strings.Join(entries, ",")
}

// ParseMapping reads a virtual lane for each of the 16 service levels, parted by commas;
// virtual lane 15 drops.
func ParseMapping(text string) (m *[SLs]ib.VL, err error) {
	lanes := strings.Split(text, ",")
	if len(lanes) != SLs {
		return nil, fmt.Errorf("%d VLs, want one for each of %d service levels", len(lanes), SLs)
	}
	m = new([SLs]ib.VL)
	for sl, lane := range lanes {
		vl, err := strconv.ParseUint(strings.TrimSpace(lane), 10, 4)
		if err != nil {
			return nil, fmt.Errorf("VL %q, want 0 to 14, or 15 to drop", strings.TrimSpace(lane))
		}
		m[sl] = ib.VL(vl)
	}
	return m, nil
}

// MappingText is the inverse of ParseMapping.
func MappingText(m *[SLs]ib.VL) string {
	if m == nil {
		return ""
	}
	lanes := make([]string, SLs)
	for sl, vl := range m {
		lanes[sl] = strconv.Itoa(int(vl))
	}
	return strings.Join(lanes, ",")
}
