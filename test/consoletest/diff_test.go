package consoletest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ibwarden/ibwarden/internal/web"
)

// TestDifferences: what the page History says is different between two revisions follows
// from the objects of the revisions between them: what was changed back is left out, fields
// are compared whatever their order, and of a text the lines that differ are shown.
func TestDifferences(t *testing.T) {
	s := httptest.NewServer(web.Handler("", http.NotFoundHandler()))
	t.Cleanup(s.Close)
	p := newPage(t, s.URL)
	p.visit("/console/")
	for _, x := range []struct{ name, expression, want string }{
		{"made, changed and removed", `m.between([
			{revision: 2, edits: [{key: 'partition/0x0010', after: {name: 'a'}}, {key: 'tenant/red', before: {name: 'red', n: 1}, after: {name: 'red', n: 2}}]},
			{revision: 3, edits: [{key: 'partition/0x0010', before: {name: 'a'}, after: {name: 'b'}}, {key: 'removed/0x0010/0x1', after: {}}, {key: 'zone/1', before: {owner: 'red'}}]},
			{revision: 4, edits: [{key: 'tenant/red', before: {name: 'red', n: 2}, after: {n: 1, name: 'red'}}]}])`,
			`[{"key":"partition/0x0010","after":{"name":"b"},"first":2,"last":3},{"key":"zone/1","before":{"owner":"red"},"first":3,"last":3},{"key":"removed/0x0010/0x1","after":{},"first":3,"last":3}]`},
		{"made and removed is nothing", `m.between([{revision: 2, edits: [{key: 'a/1', after: {}}]}, {revision: 3, edits: [{key: 'a/1', before: {}}]}])`, `[]`},
		{"removed and made otherwise", `m.between([{revision: 2, edits: [{key: 'a/1', before: {x: 1}}]}, {revision: 3, edits: [{key: 'a/1', after: {x: 2}}]}])`,
			`[{"key":"a/1","before":{"x":1},"after":{"x":2},"first":2,"last":3}]`},
		{"fields", `m.fields({a: 1, b: {c: 'x', d: [1, 2]}, e: null}, {b: {d: [1, 3], c: 'x', f: true}, a: 1})`,
			`[{"name":"b.d","before":[1,2],"after":[1,3]},{"name":"b.f","after":true},{"name":"e","before":null}]`},
		{"fields of what is made", `m.fields(undefined, {keys: {first: '0x0001'}})`, `[{"name":"keys.first","after":"0x0001"}]`},
		{"the same in another order", `m.fields({a: {x: 1, y: [{p: 1, q: 2}]}}, {a: {y: [{q: 2, p: 1}], x: 1}})`, `[]`},
		{"lines", `m.lines('1\n2\n3\n4\n5\n6', '1\n2\n3\nfour\n5\n6').map(l => l.sign + l.text)`, `[" 2"," 3","-4","+four"," 5"," 6"]`},
		{"lines that are added and removed", `m.lines('a\nb\nc\nd', 'b\nx\nd\ne').map(l => l.sign + l.text)`, `["-a"," b","-c","+x"," d","+e"]`},
		{"every line is there", `(() => {
			const a = Array.from({length: 2000}, (_, i) => 'a' + i), b = Array.from({length: 1500}, (_, i) => 'b' + i);
			const l = m.lines(a.join('\n'), b.join('\n'));
			return [l.filter(x => x.sign === '-').length, l.filter(x => x.sign === '+').length];
		})()`, `[2000,1500]`},
		{"words", `m.sentences(['port 1 is red\'s', 'member/0x0010/0x1 is made', 'removed/0x0010/0x2 is made', 'partition/0x0010 is changed'])`,
			`["port 1 is red's","member 0x1 of 0x0010 is made","partition 0x0010 is changed"]`},
	} {
		var got json.RawMessage
		p.evaluate(`import('/console/pages/history-diff.js').then(m => `+x.expression+`)`, &got)
		if string(got) != x.want {
			t.Errorf("%s: %s\nwant %s", x.name, got, x.want)
		}
	}
}
