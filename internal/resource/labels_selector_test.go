package resource

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestSelectors: what kubectl takes chooses what kubectl would choose, and nothing else is a selector.
func TestSelectors(t *testing.T) {
	a, err := MakeLabels(map[string]string{"env": "prod", "team": "ml", "example.com/rack": "", "x": "1"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"": true, " ": true, "env=prod": true, "env==prod": true, "env = prod": true, "env!=prod": false, "env=test": false, "env!=test": true,
		"env": true, "!env": false, "none": false, "!none": true, "none!=x": true, "none=": false, "example.com/rack": true, "example.com/rack=": true,
		"env in (prod)": true, "env in (test, prod)": true, "env in (test)": false, "env notin (test)": true, "env notin (prod,test)": false, "none notin (x)": true,
		"env=prod,team=ml": true, "env=prod,team=x": false, "env in (a,prod),team notin (x),!none,x": true, "env in (prod),none": false, "env in(prod)": true,
		"example.com/rack in ()": true,
	} {
		s, err := ParseSelector(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := s.Chooses(a); got != want {
			t.Errorf("%q chooses: %v, want %v", text, got, want)
		}
	}
	many := strings.Repeat("a,", RequirementsMax)
	for _, text := range []string{
		"=", "=x", "a=b=c", "a in", "a in (b", "a in b)", "a in ((b))", "a,,b", ",a", "a,", "a b", "!", "!!a", "-a", "a/", "/a", "A.b/c", "a/b/c", "a=-", "a in (b c)", "a<1", "a=\xff",
		many + "a", strings.Repeat("a", SelectorMax+1), "a in (" + strings.Repeat("b,", ValuesMax) + "b)",
	} {
		if s, err := ParseSelector(text); err == nil {
			t.Errorf("%.60q is a selector: %v", text, s)
		}
	}
}

// TestSets: a Set has its labels and no others, through JSON too, and what is no label is refused.
func TestSets(t *testing.T) {
	for _, of := range []map[string]string{nil, {"a": ""}, {"b": "1", "a": "2"}, {"x.y/z": "A_b.c-d"}, {strings.Repeat("k", NameMax): strings.Repeat("v", NameMax)}} {
		s, err := MakeLabels(of)
		if err != nil || fmt.Sprint(s.Map()) != fmt.Sprint(of) || s.Check() != nil {
			t.Errorf("%v is %q, %v", of, s, err)
		}
		var back LabelSet
		data, _ := json.Marshal(s)
		if err := json.Unmarshal(data, &back); err != nil || back != s {
			t.Errorf("%s is read as %q, %v", data, back, err)
		}
	}
	full := map[string]string{}
	for i := range LabelsMax + 1 {
		full[fmt.Sprint("k", i)] = ""
	}
	for _, of := range []map[string]string{full, {"": "x"}, {"a": "b,c"}, {"a=b": "c"}, {"a": " "}, {"a": strings.Repeat("v", NameMax+1)}, {strings.Repeat("k", NameMax+1): ""}, {"a\n": "x"}, {strings.Repeat("p", PrefixMax+1) + "/a": ""}} {
		if s, err := MakeLabels(of); err == nil {
			t.Errorf("%v is a set of labels: %q", of, s)
		}
	}
	for _, s := range []LabelSet{"b=1,a=2", "a", "a=1,a=2", "a=-"} {
		if s.Check() == nil {
			t.Errorf("%q is in order", s)
		}
	}
}
