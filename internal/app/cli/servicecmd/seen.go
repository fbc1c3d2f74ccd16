package servicecmd

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// seenFlag is what a command line says where the API wants If-Match.
const seenFlag = "on the command line: --seen REVISION"

// addSeen adds the flag to a command that changes one object, or several: a change by
// somebody else that the caller has not seen is not overwritten. The API's condition is
// the very revision that an object has; the flag takes any later one too, since whoever
// has seen revision 12 knows of what was done in revision 5.
func addSeen(c *cobra.Command) {
	c.Flags().Uint64("seen", 0, "the last revision that you have seen: fails if the object was changed after it")
}

// seenRevision is the value of the flag, 0 for none.
func seenRevision(c *cobra.Command) uint64 {
	n, err := c.Flags().GetUint64("seen")
	if err != nil {
		return 0
	}
	return n
}

// unchanged returns an error if an object with this ETag was changed after the revision
// that the command line says was seen.
func unchanged(c *cobra.Command, etag, what string) error {
	seen := seenRevision(c)
	if seen == 0 {
		return nil
	}
	n, err := strconv.ParseUint(strings.Trim(etag, `"`), 10, 64)
	switch {
	case err != nil:
		return terminal.WithBad(fmt.Errorf("%s: the service sent the ETag %q: want a revision", what, etag))
	case n > seen:
		return terminal.WithBad(fmt.Errorf("%s was changed in revision %d, after revision %d, the last that you have seen", what, n, seen))
	}
	return nil
}

// seenTag is the ETag for a change of an object, if the command line says what was seen:
// that of the object, if it was not changed after that.
func seenTag(c *cobra.Command, to *client.Client, path, what string) (string, error) {
	if seenRevision(c) == 0 {
		return "", nil
	}
	_, etag, err := client.Get[json.RawMessage](c.Context(), to, path, nil)
	if err != nil {
		return "", err
	}
	return etag, unchanged(c, etag, what)
}

// findSeen is the number of a partition, and the ETag for a change of it.
func findSeen(c *cobra.Command, to *client.Client, text string) (pkey, etag string, err error) {
	if pkey, err = find(c.Context(), to, text); err == nil {
		etag, err = seenTag(c, to, "/partitions/"+pkey, "partition "+pkey)
	}
	return pkey, etag, err
}
