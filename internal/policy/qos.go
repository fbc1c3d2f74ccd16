package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// ServiceLevel gives the paths of a partition to some services a service level.
type ServiceLevel struct {
	observed.ServiceRange
	Pos Pos
}

// ServiceLevelsMax is the most of them in a partition.
const ServiceLevelsMax = 1 << 10

// ServiceIDWant says what ParseServiceIDs reads, for messages.
const ServiceIDWant = "a service ID 0x..., a range 0x...-0x..., or sdp, rds or iser"

// serviceNames are the words for service IDs that OpenSM's QoS policy knows.
var serviceNames = []struct {
	name        string
	first, last uint64
}{
	{"sdp", 0x10000, 0x1FFFF},
	{"rds", 0x10648CA, 0x10648CA},
	{"iser", 0x1060CBC, 0x1060CBC},
}

// ParseServiceIDs reads a service ID, a range of them, or a word for some.
func ParseServiceIDs(text string) (first, last uint64, err error) {
	for _, n := range serviceNames {
		if n.name == text {
			return n.first, n.last, nil
		}
	}
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	first, err = serviceID(low)
	if err == nil {
		last, err = serviceID(high)
	}
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("%q", text)
	case first > last:
		return 0, 0, fmt.Errorf("%q, which ends before it begins,", text)
	}
	return first, last, nil
}

func serviceID(text string) (uint64, error) {
	digits, hex := strings.CutPrefix(strings.TrimSpace(text), "0x")
	if !hex {
		return 0, errors.New("no 0x")
	}
	return strconv.ParseUint(digits, 16, 64)
}

// ServiceIDsText is the inverse of ParseServiceIDs.
func ServiceIDsText(first, last uint64) string {
	for _, n := range serviceNames {
		if n.first == first && n.last == last {
			return n.name
		}
	}
	if first == last {
		return fmt.Sprintf("%#x", first)
	}
	return fmt.Sprintf("%#x-%#x", first, last)
}

// Covered is the place in a list of an entry that has service IDs of x; -1 for none.
func Covered(list []ServiceLevel, x ServiceLevel) int {
	return slices.IndexFunc(list, func(y ServiceLevel) bool { return y.First <= x.Last && x.First <= y.Last })
}

// UsualRate is the rate of a group that states none.
func (p *Partition) UsualRate() ib.Rate {
	if p.RateLimit != 0 && p.RateLimit.Tenths() < DefaultRate.Tenths() {
		return p.RateLimit
	}
	return DefaultRate
}
