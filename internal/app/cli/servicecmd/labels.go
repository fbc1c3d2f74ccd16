package servicecmd

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// addSelector adds -l to a list.
func addSelector(c *cobra.Command, to *string) {
	c.Flags().StringVarP(to, "selector", "l", "", "only those with these labels, as kubectl takes them: env=prod,team in (a, b),!old")
}

// selecting adds a selector to what a list is asked for.
func selecting(q url.Values, selector string) url.Values {
	if selector != "" {
		q.Set("selector", selector)
	}
	return q
}

// addLabels adds --label to what makes or changes an object.
func addLabels(c *cobra.Command, to *[]string) {
	c.Flags().StringArrayVar(to, "label", nil, "KEY=VALUE, or KEY- to remove one; may be given several times")
}

// labelled are labels with those of --label over them; nil, which leaves them as they are, where none is
// given.
func labelled(old map[string]string, flags []string) (map[string]string, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	maps.Copy(out, old)
	for _, f := range flags {
		key, value, is := strings.Cut(f, "=")
		if bare, removed := strings.CutSuffix(f, "-"); !is && removed {
			delete(out, bare)
			continue
		}
		if !is || key == "" {
			return nil, terminal.WithMisuse(fmt.Errorf("--label %q: want KEY=VALUE, or KEY- to remove one", f))
		}
		out[key] = value
	}
	return out, nil
}

// labelsText is labels as a selector has them; "" for none.
func labelsText(labels map[string]string) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, k+"="+labels[k])
	}
	return strings.Join(list, ",")
}
