package run

import (
	"net/url"
	"strings"
)

// named is a list of URLs without what may be secret in them.
func named(list string) string {
	var out []string
	for _, text := range strings.Split(list, ",") {
		u, err := url.Parse(text)
		if err != nil {
			out = append(out, "?")
			continue
		}
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		out = append(out, u.String())
	}
	return strings.Join(out, ",")
}
