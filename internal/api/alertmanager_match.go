package api

import (
	"fmt"
	"net/http"
	"regexp"
	"regexp/syntax"
	"strconv"

	"github.com/ibwarden/ibwarden/internal/resource"
)

const (
	// matchersMost is how many matchers a request may have, matcherMost how many bytes the text of one.
	matchersMost, matcherMost = 32, 512
	// programMost bounds the regular expressions of a request together, in instructions of their programs: what they
	// take to match grows with these.
	programMost = 1000
)

// matcher is one of Alertmanager's: it compares a label, which is empty where there is none, with a text or with an
// anchored regular expression (RE2).
type matcher struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	IsRegex bool   `json:"isRegex"`
	IsEqual *bool  `json:"isEqual,omitempty"` // nil for true
	re      *regexp.Regexp
}

// matchers all have to match.
type matchers []matcher

var (
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,127}$`)
	oneMatcher = regexp.MustCompile(`^\s*(\w+)\s*(=~|!~|!=|=)\s*((?s).*?)\s*$`)
)

// parsedMatchers are those of a query, each like severity=~"high|critical".
func parsedMatchers(texts []string) (list matchers, err error) {
	for _, text := range texts[:min(len(texts), matchersMost+1)] {
		m := oneMatcher.FindStringSubmatch(text[:min(len(text), 4*matcherMost)])
		if m == nil {
			return nil, invalid("filter %.100q: want one like severity=~%q", text, "high|critical")
		}
		if value, err := strconv.Unquote(m[3]); err == nil {
			m[3] = value
		}
		equal := m[2][0] == '='
		list = append(list, matcher{Name: m[1], Value: m[3], IsRegex: m[2][1:] == "~", IsEqual: &equal})
	}
	return list, list.compile()
}

// compile checks matchers, and makes them ready to match.
func (l matchers) compile() error {
	if len(l) > matchersMost {
		return invalid("more matchers than %d", matchersMost)
	}
	size := 0
	for i := range l {
		m := &l[i]
		if !labelName.MatchString(m.Name) || len(m.Value) > matcherMost {
			return invalid("matcher of %.100q: want the name of a label, and a text of at most %d bytes", m.Name, matcherMost)
		}
		if !m.IsRegex {
			continue
		}
		parsed, err := syntax.Parse(m.Value, syntax.Perl)
		if err != nil {
			return invalid("matcher of %s: want a regular expression (RE2): %v", m.Name, err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err == nil {
			size += len(program.Inst)
		}
		if err != nil || size > programMost {
			return invalid("matcher of %s: the regular expressions are too large", m.Name)
		}
		m.re = regexp.MustCompile("^(?s:" + m.Value + ")$")
	}
	return nil
}

// match reports whether all match.
func (l matchers) match(labels map[string]string) bool {
	for _, m := range l {
		is := labels[m.Name] == m.Value
		if m.IsRegex {
			is = m.re.MatchString(labels[m.Name])
		}
		if is != (m.IsEqual == nil || *m.IsEqual) {
			return false
		}
	}
	return true
}

// invalid is the error of a request.
func invalid(format string, args ...any) error {
	return problem(http.StatusUnprocessableEntity, string(resource.Invalid), fmt.Sprintf(format, args...))
}
