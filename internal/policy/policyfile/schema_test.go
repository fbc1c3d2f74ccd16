package policyfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ibwarden/ibwarden/internal/policy"
)

// asJSON is a policy in YAML as schemas see it.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestSchemaTakesPolicies: those that Read takes, the examples and one with everything.
func TestSchemaTakesPolicies(t *testing.T) {
	schema := compiled(t)
	examples, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{`version: 1
default: none
raw: deny
descriptions: trusted
may_be_absent: warn
trusted: [{at: "leaf-1:1"}]
apart: [0x0002c90300000007, 0x0200000000000000-0x0200000000ffffff]
settings: {packet_life_time: 18, qos_levels: [{sl: 1, share: 30%}, {sl: 0, share: 70}], links: [{at: "leaf-1:5", width: 1x, speed: sdr}], drain: [spine-1]}
groups: {red: ["red-*"], blue: {ports: [{at: "leaf-1:3"}], may_be_absent: true}}
aliases: [{port: 0x0002c90300a1b2c3, guids: [0x0202c90300000001, 0]}]
partitions:
  - {name: red, pkey: 0x0010, sl: 0, rate_limit: 25, service_ids: [{id: iser, sl: 1}], members: {full: [red], limited: [ALL_ROUTERS]}, ipoib: {mtu: 4096, scope: [link, 5]}, multicast: [{mgid: "ff12:401b::16"}]}
  - {name: blue, members: [{as: full, ports: [blue]}, {as: limited, ports: [0x0002c90300000001], index0: true}], ipoib: true}
services: [{name: disks, pkey: 0x0030, pkeys: {blue: 0x0040}, offered_by: [red], to: [blue], ipoib: true}]
`}
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(text), "version:") || strings.Contains(string(text), "\nversion:") {
			texts = append(texts, string(text))
		}
	}
	if len(texts) < 3 {
		t.Fatalf("%d policies: want the examples", len(texts))
	}
	for _, text := range texts {
		if err := schema.Validate(asJSON(t, text)); err != nil {
			t.Errorf("the schema: %v\n%s", err, text)
		}
		if _, err := ReadYAML([]byte(text), "p.yaml"); err != nil {
			t.Errorf("Read: %v", err)
		}
	}
	for _, text := range []string{"version: 2", "version: 1\ndefault: most", "partitions: []", "version: 1\npartitions: [{nam: red}]", "version: 1\nservices: [{name: a, offered_by: []}]"} {
		if schema.Validate(asJSON(t, text)) == nil {
			t.Errorf("the schema takes %q", text)
		}
		if _, err := ReadYAML([]byte(text), "p.yaml"); err == nil {
			t.Errorf("Read takes %q", text)
		}
	}
}

// TestSchemaHasEveryKey: each mapping of the schema has the keys that Read knows there, as
// ReadYAML lists them itself when it finds one that it does not know.
// TestKeys: the keys of the reader are those of the schema, and the writer begins with one.
func TestKeys(t *testing.T) {
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if got, want := YAMLKeys(), slices.Sorted(maps.Keys(schema.Properties)); !slices.Equal(got, want) {
		t.Errorf("keys of the reader %v, of the schema %v", got, want)
	}
	first, _, _ := strings.Cut(string(WriteYAML(&policy.Policy{})), ":")
	if !slices.Contains(YAMLKeys(), first) {
		t.Errorf("a policy is written with %q first", first)
	}
}

func TestSchemaHasEveryKey(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(Schema, &root); err != nil {
		t.Fatal(err)
	}
	places := map[string]string{ // a policy with an unknown key, and where its mapping is in the schema
		"zz: 1":                                           "properties",
		"settings: {zz: 1}":                               "properties/settings/properties",
		"groups: {a: {zz: 1}}":                            "properties/groups/additionalProperties/oneOf/1/properties",
		"groups: {}\ntrusted: [{zz: 1}]":                  "$defs/selector/oneOf/1/properties",
		"aliases: [{zz: 1}]":                              "properties/aliases/items/properties",
		"partitions: [{name: a, zz: 1}]":                  "properties/partitions/items/properties",
		"partitions: [{name: a, members: {zz: 1}}]":       "$defs/members/oneOf/0/properties",
		"partitions: [{name: a, members: [{zz: 1}]}]":     "$defs/members/oneOf/1/items/properties",
		"partitions: [{name: a, ipoib: {zz: 1}}]":         "$defs/ipoib/oneOf/1/properties",
		"partitions: [{name: a, multicast: [{zz: 1}]}]":   "properties/partitions/items/properties/multicast/items/properties",
		"partitions: [{name: a, service_ids: [{zz: 1}]}]": "properties/partitions/items/properties/service_ids/items/properties",
		"settings: {links: [{zz: 1}]}":                    "properties/settings/properties/links/items/properties",
		"settings: {qos_levels: [{zz: 1}]}":               "properties/settings/properties/qos_levels/items/properties",
		"services: [{name: a, zz: 1}]":                    "properties/services/items/properties",
	}
	for text, place := range places {
		_, err := ReadYAML([]byte("version: 1\n"+text), "p.yaml")
		var refused *policy.Error
		if !errors.As(err, &refused) {
			t.Fatalf("%s: %v", text, err)
		}
		i := slices.IndexFunc(refused.Faults, func(f policy.Fault) bool { return strings.Contains(f.Found, `key "zz"`) })
		if i < 0 {
			t.Fatalf("%s: %v: want the unknown key among it", text, err)
		}
		at, _ := walk(root, strings.Split(place, "/")).(map[string]any)
		if want := policy.OrList(slices.Sorted(maps.Keys(at))); refused.Faults[i].Expected != want {
			t.Errorf("%s: Read knows %s\nthe schema has %s", text, refused.Faults[i].Expected, want)
		}
	}
	if n := strings.Count(string(Schema), `"additionalProperties": false`); n != len(places) {
		t.Errorf("%d mappings in the schema, %d here", n, len(places))
	}
}

func walk(v any, way []string) any {
	for _, step := range way {
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			v = at[step[0]-'0']
		}
	}
	return v
}
