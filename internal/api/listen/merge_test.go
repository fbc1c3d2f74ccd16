package listen

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestApply: the examples of RFC 7396, appendix A.
func TestApply(t *testing.T) {
	for _, x := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`}, {`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`}, {`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`}, {`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`}, {`{"a":"b"}`, `["c"]`, `["c"]`}, {`{"a":"foo"}`, `null`, `null`}, {`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`}, {`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		var in [3]any
		for i, text := range x {
			if err := json.Unmarshal([]byte(text), &in[i]); err != nil {
				t.Fatal(err)
			}
		}
		if got := apply(in[0], in[1]); !reflect.DeepEqual(got, in[2]) {
			t.Errorf("%s with %s: %v, want %s", x[0], x[1], got, x[2])
		}
	}
}

// TestInto: what the patch does not name stays, null goes back to the zero value, and what has two
// readings is refused.
func TestInto(t *testing.T) {
	type inner struct {
		N int `json:"n,omitempty"`
		M int `json:"m,omitempty"`
	}
	type outer struct {
		A      string            `json:"a,omitempty"`
		Inner  inner             `json:"inner"`
		Labels map[string]string `json:"labels,omitzero"`
	}
	before := func() *outer { return &outer{"x", inner{1, 2}, map[string]string{"k": "v", "l": "w"}} }
	for patch, want := range map[string]outer{
		`{}`:                            *before(),
		`{"a":"y"}`:                     {"y", inner{1, 2}, map[string]string{"k": "v", "l": "w"}},
		`{"a":null,"inner":{"n":null}}`: {"", inner{0, 2}, map[string]string{"k": "v", "l": "w"}},
		`{"labels":{"k":null,"m":"z"}}`: {"x", inner{1, 2}, map[string]string{"l": "w", "m": "z"}},
		`{"labels":null,"inner":null}`:  {"x", inner{}, nil},
	} {
		to := &outer{}
		data, _ := json.Marshal(before())
		_ = json.Unmarshal(data, to)
		if err := Merge([]byte(patch), to); err != nil || !reflect.DeepEqual(*to, want) {
			t.Errorf("%s: %+v, %v, want %+v", patch, *to, err, want)
		}
	}
	for _, patch := range []string{`{"a":"x","a":"y"}`, `{"A":"x"}`, `{"a":1}`, `{`, `{} {}`} {
		if err := Merge([]byte(patch), before()); err == nil {
			t.Errorf("%s is taken", patch)
		}
	}
}
