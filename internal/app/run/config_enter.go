package run

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"
)

// Environment are the variables that name defaults of flags, by the names of the flags.
type Environment map[string]string

// By is the variable that sets a flag; empty for none.
func (e Environment) By(flag string) string {
	if v := e[flag]; v != "" && os.Getenv(v) != "" {
		return v
	}
	return ""
}

// Counts reports whether the files' setting of a flag is the one that counts: the
// command line, as it was before Enter, and the environment go first.
func (s *Settings) Counts(f *pflag.Flag, e Environment) bool {
	_, ok := s.Of(f.Name)
	return ok && !f.Changed && e.By(f.Name) == ""
}

// Changed reports whether files say something else of a name than they said before.
func Changed(before, now *Settings, name string) bool {
	old, had := before.Of(name)
	fresh, has := now.Of(name)
	return had != has || !old.same(fresh)
}

// Enter sets the flags that neither the command line nor the environment sets. It returns
// where the value of each of all flags comes from: a flag, a variable, FILE:LINE, or
// "default".
func (s *Settings) Enter(flags *pflag.FlagSet, e Environment) (origins map[string]string, err error) {
	origins = map[string]string{}
	flags.VisitAll(func(f *pflag.Flag) {
		switch of, _ := s.Of(f.Name); {
		case f.Changed:
			origins[f.Name] = "--" + f.Name
		case e.By(f.Name) != "":
			origins[f.Name] = e.By(f.Name)
		case s.Counts(f, e):
			origins[f.Name] = of.Where()
			if x := of.set(f); x != nil {
				err = fmt.Errorf("%s: %s: %w", of.Where(), f.Name, x) // Read has tried it
			}
		default:
			origins[f.Name] = "default"
		}
	})
	return origins, err
}

func (s Setting) set(f *pflag.Flag) (err error) {
	if slice, ok := f.Value.(pflag.SliceValue); ok && s.list {
		err = slice.Replace(s.Values)
	} else {
		err = f.Value.Set(s.Values[0])
	}
	f.Changed = true
	return err
}

// Print writes every setting as a configuration file that says the same, with the origin
// of each value beside it. Secrets are left out.
func Print(w io.Writer, flags *pflag.FlagSet, origins map[string]string, e Environment) error {
	t := tabwriter.NewWriter(w, 0, 1, 2, ' ', 0)
	for _, name := range Names(flags) {
		f := flags.Lookup(name)
		text, err := valueOf(f, e)
		switch {
		case err != nil:
			return err
		case secret(name, []string{f.Value.String()}), name == "webhook" && f.Value.String() != "", name == "alertmanager" && f.Changed: // URLs may have secrets in them
			fmt.Fprintf(t, "# %s is a secret\t# %s\n", name, origins[name])
		default:
			fmt.Fprintf(t, "%s: %s\t# %s\n", name, text, origins[name])
		}
	}
	return t.Flush()
}

// plain are texts that YAML takes for texts without quotes, and that no reader takes for
// anything else.
var plain = regexp.MustCompile(`^[A-Za-z_/]([A-Za-z0-9_./:,=+-]*[A-Za-z0-9_/])?$`)

// words are those that are no texts in some version of YAML.
var words = []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}

// valueOf is a value in YAML, on one line.
func valueOf(f *pflag.Flag, e Environment) (string, error) {
	text := f.Value.String()
	switch slice, ok := f.Value.(pflag.SliceValue); {
	case ok:
		list, err := json.Marshal(append([]string{}, slice.GetSlice()...)) // JSON is YAML
		return string(list), err
	case f.Value.Type() == "bool" || f.Value.Type() == "duration" || number(f):
		return text, nil
	case text == "" && e.By(f.Name) != "": // a default that is looked for later
		text = os.Getenv(e.By(f.Name))
	}
	if plain.MatchString(text) && !slices.Contains(words, strings.ToLower(text)) {
		return text, nil
	}
	quoted, err := json.Marshal(text)
	return string(quoted), err
}
