package run

import "testing"

// What is told of a store has no password in it.
func TestStoreIsNamedWithoutSecrets(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:2379":                         "http://127.0.0.1:2379",
		"https://root:hidden@a:2379,https://b?x=hidden": "https://a:2379,https://b",
		"http://a\x7f:hidden":                           "?",
	} {
		if got := named(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
