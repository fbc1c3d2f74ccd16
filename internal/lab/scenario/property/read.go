package property

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// Read reads one NAME=VALUE of a device, as pkey-nvram=on or partition-cap=5. The
// function makes a device so; it is false for what is no switch and would have to be.
func Read(text string) (apply func(*sma.Config) bool, err error) {
	name, value, _ := strings.Cut(text, "=")
	all := All()
	t, ok := all[name]
	if !ok {
		return nil, fmt.Errorf("%q%s: want one of %s", name, names.DidYouMean(name, slices.Collect(maps.Keys(all))), strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	var n uint64
	switch {
	case t.Bits > 1:
		if n, err = strconv.ParseUint(value, 0, t.Bits); err != nil {
			return nil, fmt.Errorf("%s=%q: want a number of %d bits", name, value, t.Bits)
		}
	case value == "on":
		n = 1
	case value != "off":
		return nil, fmt.Errorf("%s=%q: want on or off", name, value)
	}
	return func(c *sma.Config) bool { return t.Apply(c, n) }, nil
}
