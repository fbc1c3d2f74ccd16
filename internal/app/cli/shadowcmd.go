package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/judge/shadow"
)

const (
	// reportSince is how far a report goes back when nobody says.
	reportSince = "7d"
	day         = 24 * time.Hour
	// vague is how far the reading that showed a thing last may be from the one that showed that
	// it was over, before a report has both.
	vague = 10 * time.Minute
)

func newShadow() *cobra.Command {
	var data, since, html string
	var asJSON bool
	c := &cobra.Command{
		Use:   "shadow",
		Short: "Report who could reach whom against the policy, and when",
		Long: `Report what ibwarden run --read-only --policy FILE has found beside another manager:
who could reach whom against the policy, and from when until when; what the other
manager did not notice; what was not read; and what ibwarden would write.

Times are right to a reading. What was not read has not ended: it is shown as not
seen since then.

Exit status: 0 reported, whatever was found; 2 bad input, or nothing was recorded.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			back, err := parseSince(since)
			if err != nil {
				return misuse(err)
			}
			if html != "" && asJSON {
				return misuse(errors.New("--html and --json: want one of them"))
			}
			now := time.Now().UTC()
			s, err := readShadow(data, now.Add(-back), now)
			if err != nil {
				return misuse(err)
			}
			switch {
			case asJSON:
				err = terminal.JSON(c.OutOrStdout(), s)
			case html != "":
				err = files.Replace(html, func(w io.Writer) error { return printShadowPage(w, s) })
			default:
				err = printShadow(c.OutOrStdout(), s)
			}
			return terminal.OrBad(err)
		},
	}
	run.AddData(c.Flags(), &data)
	c.Flags().StringVar(&since, "since", reportSince, "how far to go back: a number of days such as 7d, or a time such as 12h")
	c.Flags().StringVar(&html, "html", "", "write one page with a time line to this file; one that is there is replaced")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// parseSince reads a time that --since names.
func parseSince(text string) (time.Duration, error) {
	if days, is := strings.CutSuffix(text, "d"); is {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= files.Days {
			return time.Duration(n) * day, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d, nil
	}
	return 0, fmt.Errorf("--since %q: want days, 1d to %dd, or a time with its unit, such as 12h", text, files.Days)
}

// readShadow reads the records in a data directory.
func readShadow(data string, since, now time.Time) (*shadow.Summary, error) {
	dir, err := daemon.DataDir(data), error(nil)
	if dir == "" {
		if dir, err = daemon.DefaultDataDir("umad"); err != nil {
			return nil, err
		}
	}
	records, damaged, err := files.ReadShadow(dir.File(shadowDir), since)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(records) == 0 {
		return nil, fmt.Errorf("--data %s: no records: want the directory of ibwarden run --read-only --policy FILE --data DIR", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	s := shadow.Summarize(records, since, now)
	s.Damaged = damaged
	return s, nil
}

// shadowTitles are the parts of a report.
var shadowTitles = []struct {
	kind        shadow.Kind
	name, title string
}{
	{shadow.Exposure, "exposure", "Ports that can reach each other where the policy does not allow it"},
	{shadow.Forgeable, "forgeable exposure", "Ports that could, if a host forged its table: switch ports let more pass than the policy"},
	{shadow.Unguarded, "unguarded port", "Ports that no switch holds to their partitions"},
	{shadow.EmptySwitch, "empty forwarding table", "Switches without routes, which the other manager has not noticed"},
	{shadow.MovedHost, "moved host", "Hosts that moved, which the other manager has not followed"},
	{shadow.AbsentName, "absent name", "Names in the policy that match nothing"},
	{shadow.Unread, "unread place", "What could not be read"},
}

// spanRow is a fact in time, in words. Names are what devices say of themselves.
type spanRow struct{ Found, Gone, What string }

func rowOf(s *shadow.Span) spanRow {
	r := spanRow{Found: clock(s.Began), Gone: "still so"}
	switch {
	case !s.Ended.IsZero():
		r.Gone = clock(s.Ended)
		if !s.Last.IsZero() && s.Ended.Sub(s.Last) > vague {
			r.Gone += ", last seen " + clock(s.Last)
		}
	case !s.Unseen.IsZero():
		r.Gone = "not read since " + clock(s.Unseen)
	}
	if s.After.IsZero() {
		r.Found = "before " + r.Found
	}
	r.What = portText(&s.A)
	switch s.Kind {
	case shadow.Exposure, shadow.Forgeable:
		r.What += " and " + portText(&s.B) + " " + s.Text
	case shadow.MovedHost:
		r.What += " came from " + portText(&s.B) + ": " + s.Text
	case shadow.AbsentName:
		r.What = s.Text
	case shadow.Unguarded:
		if s.B.Name != "" {
			r.What += " before " + portText(&s.B)
		}
		r.What += ": " + s.Text
	default:
		r.What += ": " + s.Text
	}
	r.What = terminal.Plain(r.What)
	return r
}

// portText names a port by what cannot be mistaken too.
func portText(p *shadow.Port) string {
	text := p.Name
	if p.GUID != 0 {
		text += " (" + strings.Join(append([]string{p.GUID.String()}, p.Partitions...), ", ") + ")"
	}
	return text
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// shadowLines are what is to be said first.
func shadowLines(s *shadow.Summary) []string {
	out := []string{fmt.Sprintf("%s to %s UTC: %s, %d of them not read entirely; %d requests, %.0f a second at most",
		clock(s.Since), clock(s.Until), terminal.Count(s.Rounds, "reading"), s.Incomplete, s.Reads, s.Fastest)}
	if s.Rounds > 0 {
		out = append(out, fmt.Sprintf("first reading %s, last %s", clock(s.First), clock(s.Last)))
	}
	for _, t := range shadowTitles {
		if all, open := s.Open(t.kind); all > 0 {
			out = append(out, fmt.Sprintf("%s, %d of them still there", terminal.Count(all, t.name), open))
		}
	}
	if s.Truncated {
		out = append(out, fmt.Sprintf("not all is here: %d pairs of ports are kept at once, and %d changes a day", shadow.ExposuresMax, shadow.SpansPerDay))
	}
	if s.Damaged > 0 {
		out = append(out, fmt.Sprintf("%s of the records could not be read", terminal.Count(s.Damaged, "line")))
	}
	return out
}

// writesText is what ibwarden would write, in lines.
func writesText(w *shadow.Writes) (out []string) {
	switch {
	case w == nil:
		return []string{"not known: no reading was complete"}
	case w.Refused != "":
		return []string{"nothing: " + terminal.Plain(w.Refused)}
	case w.Blocks == 0:
		return []string{"nothing: every table is as the policy wants it"}
	}
	var by []string
	for _, a := range w.By {
		by = append(by, fmt.Sprintf("%d %s", a.Blocks, terminal.Plain(a.Attribute)))
	}
	out = append(out, fmt.Sprintf("%s: %s; the first:", terminal.Count(w.Blocks, "block"), strings.Join(by, ", ")))
	for _, text := range w.First {
		out = append(out, terminal.Plain(text))
	}
	return out
}

// textRowsMax bounds the rows of a part on the terminal.
const textRowsMax = 50

// printShadow prints a report for people.
func printShadow(w io.Writer, s *shadow.Summary) error {
	var b strings.Builder
	for _, line := range shadowLines(s) {
		fmt.Fprintln(&b, line)
	}
	if len(s.Gaps) > 0 {
		t := terminal.NewTable("from", "until", "no reading: why")
		for _, g := range s.Gaps {
			t.Add(clock(g.From), clock(g.Until), g.Why)
		}
		fmt.Fprintln(&b)
		_ = t.Print(&b, "", false) // a Builder takes all
	}
	for _, part := range shadowTitles {
		t := terminal.NewTable("found", "gone", "what")
		n := 0
		for i := range s.Spans {
			if x := &s.Spans[i]; x.Kind == part.kind {
				if n++; n <= textRowsMax {
					r := rowOf(x)
					t.Add(r.Found, r.Gone, r.What)
				}
			}
		}
		if n > 0 {
			fmt.Fprintf(&b, "\n%s:\n", part.title)
			_ = t.Print(&b, "", false)
		}
		if n > textRowsMax {
			fmt.Fprintf(&b, "and %d more: --json or --html FILE\n", n-textRowsMax)
		}
	}
	fmt.Fprintf(&b, "\nibwarden would write %s\n", strings.Join(writesText(s.Writes), "\n  "))
	_, err := io.WriteString(w, b.String())
	return err
}
