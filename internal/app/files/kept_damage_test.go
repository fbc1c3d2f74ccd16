package files

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// free are values of a state file that may be anything of their type, by the end of their
// place: what people read, and numbers that are what they are.
var free = []string{"names[]", "fences.*", "packet_lifetime", "q_key", "tclass", "hop_limit", "groups_made", "rate", "join_state", "left_ns", "enum", "qp", "sl", "p_key", "sa_key_sum", "partition", "retired_mlids.*", "salt", "inform", "record"}

// leaves calls do for each value in JSON that is no list and no object, with its place, and
// what puts another in its stead.
func leaves(at string, value any, put func(any), do func(at string, value any, put func(any))) {
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			name := at + "." + k
			if strings.HasPrefix(k, "0x") || at == ".pkeys" || at == ".fences" {
				name = at + ".*"
			}
			leaves(name, v[k], func(x any) { v[k] = x }, do)
		}
	case []any:
		for i := range v {
			leaves(at+"[]", v[i], func(x any) { v[i] = x }, do)
		}
	default:
		do(at, value, put)
	}
}

// TestEveryValueIsChecked puts what cannot be in the place of each value of a whole state file,
// and of each key that is a port or a place: the file is refused, with its name.
func TestEveryValueIsChecked(t *testing.T) {
	a := hostsKept(t, 2)
	path := filepath.Join(t.TempDir(), "state")
	if err := SaveStates(path, a.Assigned, a.Registered); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file any
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		data, err := json.Marshal(file)
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = LoadState(path)
		if err == nil {
			_, _, err = LoadRegistered(path, testKey)
		}
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error that names the file", what, err)
		}
	}
	tried := 0
	leaves("", file, nil, func(at string, value any, put func(any)) {
		bad := []any{map[string]any{}}
		switch value.(type) {
		case string:
			bad = append(bad, 7)
			if !slices.ContainsFunc(free, func(end string) bool { return strings.HasSuffix(at, end) }) {
				bad = append(bad, "zz")
			} else if strings.HasSuffix(at, "salt") || strings.HasSuffix(at, "inform") || strings.HasSuffix(at, "record") {
				bad = append(bad, "0", "zz")
			}
		case float64:
			bad = append(bad, "x", -1.5, 1e30)
			if !slices.ContainsFunc(free, func(end string) bool { return strings.HasSuffix(at, end) }) {
				bad = append(bad, 1<<20, -1)
			}
			if strings.HasSuffix(at, ".lids.*") || strings.HasSuffix(at, ".lid") {
				bad = append(bad, 0, 0xC000)
			}
		}
		for _, x := range bad {
			tried++
			put(x)
			refused(fmt.Sprintf("%s: %v in place of %v", at, x, value))
		}
		put(value)
	})
	root := file.(map[string]any)
	for _, name := range []string{"lids", "forgets", "fences"} {
		root[name].(map[string]any)["zz"] = map[string]any{"lids": 1, "forgets": []any{}, "fences": "x"}[name]
		refused(name + " of zz")
		delete(root[name].(map[string]any), "zz")
	}
	administration := root["administration"].(map[string]any)
	for _, name := range []string{"retired_mlids", "alias_guids"} {
		administration[name].(map[string]any)["zz"] = map[string]any{"retired_mlids": "0x0001", "alias_guids": []any{}}[name]
		refused(name + " of zz")
		delete(administration[name].(map[string]any), "zz")
	}
	if tried < 100 {
		t.Errorf("%d values were tried: the state is nearly empty", tried)
	}
	// As it was it is read again, all of it.
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReaderOf(path, testKey)()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a, got, cmpopts.IgnoreFields(All{}, "Book", "Cables", "Secret"), cmpopts.IgnoreFields(server.Service{}, "Left"), cmpopts.EquateEmpty(),
		cmpopts.IgnoreUnexported(server.Service{}, server.Subscription{}, sa.ServiceRecord{}, sa.InformInfo{})); d != "" {
		t.Errorf("(-kept +read)\n%s", d)
	}
}
