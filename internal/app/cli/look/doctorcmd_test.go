package look

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// run runs the command on a host with nothing but a data directory that is not there yet.
// It returns what was printed and the exit status, and whether the fabric was opened.
func run(t *testing.T, fault error, line ...string) (out string, status int, opened bool) {
	t.Helper()
	root := t.TempDir()
	t.Setenv(daemon.RootVariable, root)
	t.Setenv("IBWARDEN_DATA", filepath.Join(root, "data"))
	c := DoctorCommand(func(flags *pflag.FlagSet) func(*cobra.Command) (link.Link, sweep.Options, error) {
		for name, value := range map[string]string{"fabric": "sim", "guid": "", "data": ""} {
			flags.String(name, value, "")
		}
		return func(*cobra.Command) (link.Link, sweep.Options, error) {
			opened = true
			if fault != nil {
				return nil, sweep.Options{}, fault
			}
			l, err := daemon.Open("sim", 0)
			return l, sweep.Options{}, err
		}
	}, "sim", "")
	c.SilenceErrors, c.SilenceUsage = true, true
	var b bytes.Buffer
	c.SetOut(&b)
	c.SetErr(io.Discard)
	c.SetArgs(line)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := c.ExecuteContext(ctx)
	var failed *terminal.ExitError
	if errors.As(err, &failed) {
		status = failed.Status
	} else if err != nil {
		t.Fatalf("%v: %v has no exit status", line, err)
	}
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if path != root {
			t.Errorf("%v: %s was made", line, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return b.String(), status, opened
}

// TestStatus: 0 where the fabric can be audited from here, 1 where something is missing, 2
// for bad input; a fabric behind an adapter that is not there is not tried.
func TestStatus(t *testing.T) {
	for _, x := range []struct {
		line   []string
		fault  error
		status int
		opened bool
		want   []string
	}{
		{nil, nil, 1, false, []string{"missing  adapters", "$ ibwarden doctor --fabric sim", "skipped  fabric umad"}},
		{[]string{"--fabric", "sim"}, nil, 0, true, []string{"ok       fabric sim", "22 nodes", "ready:", "  $ ibwarden audit --fabric sim"}},
		{[]string{"--fabric", "sim", "--host-only"}, nil, 0, false, []string{"--host-only: nothing was sent"}},
		{[]string{"--host-only"}, nil, 1, false, []string{"missing  adapters"}},
		{[]string{"--fabric", "sim"}, terminal.WithBad(errors.New("gone\x1b[2J")), 1, true, []string{"missing  fabric sim", "gone?[2J"}},
		{[]string{"--fabric", "sim"}, terminal.WithMisuse(errors.New("no such kind")), 2, true, nil},
		{[]string{"--fabric=umad:mlx5_0/0"}, nil, 2, false, nil},
		{[]string{"--guid", "x"}, nil, 2, false, nil},
	} {
		out, status, opened := run(t, x.fault, x.line...)
		if status != x.status || opened != x.opened {
			t.Errorf("%v: status %d, opened %v, want %d, %v\n%s", x.line, status, opened, x.status, x.opened, out)
		}
		for _, w := range x.want {
			if !strings.Contains(out, w) {
				t.Errorf("%v: want %q in\n%s", x.line, w, out)
			}
		}
		if x.status == 2 && out != "" {
			t.Errorf("%v: printed %q", x.line, out)
		}
	}
}

// TestJSON: the document has what the lines say.
func TestJSON(t *testing.T) {
	out, status, _ := run(t, nil, "--json", "--fabric", "sim")
	var r DoctorReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != 0 {
		t.Fatalf("status %d, %v in %s", status, err, out)
	}
	if !r.Ready || r.Surveyed == nil || r.Surveyed.Switches != 6 || r.Surveyed.CAs != 16 || r.Surveyed.Keys == 0 || r.Port != "" {
		t.Errorf("%+v, %+v", r, r.Surveyed)
	}
	if !slices.Contains(r.Next, "ibwarden prove --fabric sim") || strings.Contains(out, "null") {
		t.Errorf("next is %q in %s", r.Next, out)
	}
	out, status, _ = run(t, nil, "--json")
	if r = (DoctorReport{}); json.Unmarshal([]byte(out), &r) != nil || status != 1 || r.Ready || len(r.Next) > 0 || r.Surveyed != nil {
		t.Errorf("without an adapter: status %d, %s", status, out)
	}
}
