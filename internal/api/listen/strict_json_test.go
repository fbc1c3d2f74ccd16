package listen

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

type inner struct {
	PKey string `json:"pkey"`
	Sink string `json:"sink_kiss"`
}

type embedded struct {
	Task string `json:"task"`
}

// own reads itself.
type own struct{ text string }

func (o *own) UnmarshalJSON(data []byte) error { o.text = string(data); return nil }

type outer struct {
	embedded
	PKey   string           `json:"pkey"`
	Plain  string           // by its name
	Inner  inner            `json:"inner"`
	To     *inner           `json:"to"`
	List   []inner          `json:"list"`
	Map    map[string]inner `json:"map"`
	Own    own              `json:"own"`
	Hidden string           `json:"-"`
	Any    any              `json:"any"`
}

// TestUnmarshal: what is refused, where, and with which words; and what is not.
func TestUnmarshal(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{`{"pkey":"a","Plain":"b","inner":{"pkey":"c"},"to":{"sink_kiss":"d"},"list":[{"pkey":"e"},{"pkey":"f"}],"map":{"x":{"pkey":"g"}},"own":{"PKEY":1},"any":{"PKey":1},"task":"t","other":1}`, ""},
		{`{"pkey":"a","pkey":"b"}`, `key "pkey" is there twice`},
		{`{"pkey":"a","\u0070key":"b"}`, `key "pkey" is there twice`},
		{`{"pkey":"a","PKey":"b"}`, `differ only in upper and lower case`},
		{`{"PKey":"a"}`, `key "PKey": want it as "pkey"`},
		{"{\"p\u212Aey\":\"a\"}", `want it as "pkey"`},
		{`{"p\u212aey":"a"}`, `want it as "pkey"`},
		{"{\"ta\u017Fk\":\"a\"}", `want it as "task"`},
		{"{\"pkey\":\"a\",\"p\u212Aey\":\"b\"}", `differ only in upper and lower case`},
		{`{"plain":"a"}`, `want it as "Plain"`},
		{`{"inner":{"Pkey":"a"}}`, `want it as "pkey"`},
		{`{"to":{"Pkey":"a"}}`, `want it as "pkey"`},
		{`{"list":[{"pkey":"a"},{"Pkey":"a"}]}`, `want it as "pkey"`},
		{`{"map":{"x":{"Pkey":"a"}}}`, `want it as "pkey"`},
		{`{"map":{"x":{},"X":{}}}`, `differ only in upper and lower case`},
		{`{"own":{"x":1,"X":1}}`, `differ only in upper and lower case`},
		{`{"any":[{"x":{"y":1,"Y":1}}]}`, `differ only in upper and lower case`},
		{`{"other":1,"OTHER":1}`, `differ only in upper and lower case`},
		{`{"pkey":"a"} {}`, `nothing after it`},
		{"{\"pkey\":\"\xff\"}", `want UTF-8`},
		{strings.Repeat("[", DepthMax+2) + strings.Repeat("]", DepthMax+2), `nested deeper`},
	} {
		var v outer
		err := Unmarshal([]byte(tc.text), &v)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.text, err, tc.want)
		}
		if tc.want != "" && !reflect.DeepEqual(v, outer{}) {
			t.Errorf("%s: refused, and yet read: %+v", tc.text, v)
		}
	}
}

// TestOneOpinion writes a field and, in random letters, something that could be the same
// field, in both orders: what encoding/json reads differently from a program that compares
// keys exactly is refused, and nothing else is.
func TestOneOpinion(t *testing.T) {
	const seed = 27
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 5000 {
		name := []string{"pkey", "sink_kiss"}[r.IntN(2)]
		other := []rune(name)
		for j := range other {
			for range r.IntN(3) {
				other[j] = unicode.SimpleFold(other[j])
			}
		}
		if r.IntN(4) == 0 {
			other[r.IntN(len(other))] = '-'
		}
		body := fmt.Sprintf(`{%q:"checked",%q:"used"}`, name, string(other))
		switch r.IntN(3) {
		case 0:
			body = fmt.Sprintf(`{%q:"used",%q:"checked"}`, string(other), name)
		case 1:
			body = fmt.Sprintf(`{%q:"used"}`, string(other))
		}
		var exact map[string]string
		var loose, strict inner
		if err := json.Unmarshal([]byte(body), &exact); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(body), &loose); err != nil {
			t.Fatal(err)
		}
		once := strings.Count(body, `"`+name+`"`) < 2
		agree := loose == inner{exact["pkey"], exact["sink_kiss"]} && once
		err := Unmarshal([]byte(body), &strict)
		if err == nil && (!agree || strict != loose) {
			t.Fatalf("seed %d, %d: %s is taken as %+v: others read %v", seed, i, body, strict, exact)
		}
		// Two that are one to encoding/json are refused though the right one came last.
		if err != nil && agree && !strings.EqualFold(string(other), name) {
			t.Fatalf("seed %d, %d: %s is refused: %v", seed, i, body, err)
		}
	}
}
