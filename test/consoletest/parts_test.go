package consoletest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/ibwarden/ibwarden/internal/web"
)

// partsSetup are the values that the expressions of TestParts are about, in the page.
const partsSetup = `(async () => {
	const modules = ['ports', 'steps', 'plan', 'matrix', 'tenantform'];
	for (const name of modules) window[name] = await import('/console/parts/' + name + '.js');
	const port = (n, node, number, owner, more) => ({guid: '0x' + n.toString(16).padStart(16, '0'), node, node_guid: 'node ' + node, number, lid: n, owner, found: true, partitions: [], ...more});
	window.list = ports.index([port(17, 'red-1 HCA-1', 1, 'red'), port(18, 'red-2 HCA-1', 1, 'red'), port(19, 'red-2 HCA-2', 1, 'blue'),
		port(20, 'two', 1, 'provider'), port(21, 'two', 2, ''), port(22, '', undefined, 'blue', {node_guid: '', found: false, lid: undefined})]);
	window.guids = x => x.map(p => parseInt(p.guid, 16));
	window.taken = text => { const r = ports.parse(list, text); return {found: r.found.map(f => [parseInt(f.port.guid, 16), f.membership]), problems: r.problems.map(p => [p.line, p.text])}; };
	window.brief = s => s.map(x => [x.method, x.path, x.query ? x.query.port : x.body && (x.body.members || x.body.ports || x.body.to), x.ifMatch, Boolean(x.after)]);
	window.training = {pkey: '0x0100', name: 'training', owner: 'red'};
	window.render = {pkey: '0x0200', name: 'render', owner: 'blue'};
	return 1;
})()`

// TestParts: what the pages work out by themselves, of lists that people paste, of requests for
// a change, and of plans and matrices to be drawn.
func TestParts(t *testing.T) {
	server := httptest.NewServer(web.Handler("", http.NotFoundHandler()))
	defer server.Close()
	p := newPage(t, server.URL)
	p.visit("/console/")
	p.evaluate(partsSetup, new(int))
	for _, x := range []struct{ expression, want string }{
		// Names of ports.
		{`list.list.map(ports.label)`, `["red-1 HCA-1", "red-2 HCA-1", "red-2 HCA-2", "two:1", "two:2", "0x0000000000000016"]`},
		{`['0x0000000000000011', '0000:0000:0000:0011', '11', 'red', '0x00000000000000111', '000000000000001G'].map(ports.guid)`, `["0x0000000000000011", "0x0000000000000011", "", "", "", ""]`},
		{`guids(ports.find(list, 'RED hca-1').hits)`, `[17, 18]`},
		{`[ports.find(list, '', 2).hits.length, ports.find(list, '', 2).all, guids(ports.find(list, '20').hits)]`, `[2, 6, [20]]`},
		{`guids(ports.find(list, 'blue', 9, p => p.found).hits)`, `[19]`},
		// Lists that were pasted.
		{`taken('red-1\n 0x12 # no\n0x0000000000000012=limited, two:2\r\nTWO:1=full')`, `{"found": [[17, ""], [18, "limited"], [21, ""], [20, "full"]], "problems": [[2, "0x12"]]}`},
		{`taken('0x0000000000000011 0x0000000000000012\nred-1 HCA-1')`, `{"found": [[17, ""], [18, ""]], "problems": []}`},
		{`taken('two\nred-2\n19\n99\nred-1=open\n"red-1 HCA-1"')`, `{"found": [[19, ""], [17, ""]], "problems": [[1, "two"], [2, "red-2"], [4, "99"], [5, "red-1=open"]]}`},
		{`taken('0x00000000000000ff=both').found`, `[[255, "both"]]`},
		{`taken(' \n# all\n,;').problems`, `[]`},
		{`ports.sayer(list)('port 0x0000000000000014 and 0x0000000000000016')`, `"port two:1 (0x0000000000000014) and 0x0000000000000016"`},
		{`ports.sayer(list)('switch two (0x0000000000000014)')`, `"switch two (0x0000000000000014)"`},
		// Requests: what is taken away goes first, and nobody is named who was not chosen.
		{`brief(steps.memberSteps(training, [{port: 'a', membership: 'full', index0: true}, {port: 'b', membership: 'limited', remove: false}], ['c', 'd'], '"7"'))`,
			`[["DELETE", "/partitions/0x0100/members", "c,d", "\"7\"", false], ["POST", "/partitions/0x0100/members", [{"port": "a", "membership": "full", "index0": true}, {"port": "b", "membership": "limited"}], "\"7\"", false]]`},
		{`steps.memberSteps(training, [], Array(401).fill('x'), '"7"').map(s => s.query.port.split(',').length)`, `[200, 200, 1]`},
		{`brief(steps.giveSteps('blue', [list.list[0], list.list[2], list.list[3], list.list[4]]))`,
			`[["POST", "/ports/move", ["0x0000000000000011", "0x0000000000000014", "0x0000000000000015"], null, false]]`},
		{`steps.giveSteps('blue', [list.list[0], list.list[3]], render, p => p === list.list[0] ? 'full' : 'limited').map(s => [s.body.ports.length, s.body.into])`,
			`[[1, [{"pkey": "0x0200", "membership": "full"}]], [1, [{"pkey": "0x0200", "membership": "limited"}]]]`},
		{`brief(steps.giveSteps('blue', [list.list[2]]))`, `[]`},
		{`brief([steps.offerStep('blue', [list.list[0]])])`, `[["POST", "/ports/offer", ["0x0000000000000011"], null, false]]`},
		{`steps.undoSteps([{step: steps.offerStep('blue', [list.list[0]]), revision: 8}])`, `[]`},
		{`brief(steps.moveSteps([list.list[0]], [{partition: training, etag: '"3"', members: [{port: list.list[0].guid, membership: 'limited'}]}], render, {tenant: '', membership: '', etag: '"4"'}))`,
			`[["DELETE", "/partitions/0x0100/members", "0x0000000000000011", "\"3\"", false], ["POST", "/partitions/0x0200/members", [{"port": "0x0000000000000011", "membership": "limited"}], "\"4\"", false]]`},
		// A port that is taken from its tenant leaves its partitions by that.
		{`brief(steps.moveSteps([list.list[0]], [{partition: training, etag: '"3"', members: [{port: list.list[0].guid, membership: 'full'}]}], render, {tenant: 'blue', membership: 'limited', etag: '"4"'})).map(s => [s[1], s[4]])`,
			`[["/ports/move", false]]`},
		// The ETag of a step after another on the same thing is that of the other.
		{`[steps.matchOf({about: 'x', ifMatch: '"1"'}, []), steps.matchOf({about: 'x', ifMatch: '"1"'}, [{step: {about: 'x'}, revision: 5}, {step: {about: 'y'}, revision: 6}]), steps.matchOf({about: 'x'}, []) ?? null]`, `["\"1\"", "\"5\"", null]`},
		{`[[], [2, 3], [3]].map(list => steps.matchOf({about: '/rollback', ifMatch: '"1"', every: true}, list.map(revision => ({step: {about: 'x'}, revision}))))`, `["\"1\"", "\"3\"", "\"1\""]`},
		// What takes a change back.
		{`brief(steps.undoSteps([{step: {path: '/partitions/0x0100/members'}, revision: 8}, {step: {path: '/partitions/0x0200/members'}, revision: 9}]))`, `[["POST", "/rollback", 7, "\"9\"", false]]`},
		{`brief(steps.undoSteps([{step: steps.releaseStep([list.list[0]]), revision: 8}]))`, `[["POST", "/ports/assign", [{"guid": "0x0000000000000011"}], null, false], ["POST", "/rollback", 7, "\"8\"", true]]`},
		{`brief(steps.undoSteps([{step: steps.giveSteps('blue', [list.list[0]])[0], revision: 8}]))`, `[["POST", "/rollback", 7, "\"8\"", false]]`},
		{`steps.undoSteps([{step: {path: '/partitions/0x0100/members'}, revision: 8}, {step: {path: '/partitions/0x0200/members'}, revision: 10}])`, `[]`}, // another's change was the 9th
		{`brief(steps.undoSteps([{step: {path: '/tenants/red'}, revision: 8}]))`, `[]`},
		// Plans.
		{`[plan.base('0x8100'), plan.base('0x0100')]`, `["0x0100", "0x0100"]`},
		{`plan.keyTable({ports: [{role: 'end port', node: 'a', port: 1, port_guid: 'g', keys: [
			{what: 'added', pkey: '0x8100'}, {what: 'removed', pkey: '0x0200'}, {what: 'membership', pkey: '0x8300', from_pkey: '0x0300'}, {what: 'moved', pkey: '0x8400'}, {what: 'added', pkey: '0x0100'}]},
			{role: 'switch port', node: 's', port: 2, keys: [{what: 'added', pkey: '0x8100'}]}, {role: 'end port', node: 'b', port: 2, keys: [{what: 'moved', pkey: '0x8100'}]}]})`,
			`{"pkeys": ["0x0100", "0x0200", "0x0300"], "rows": [{"name": "a", "guid": "g", "cells": {"0x0100": {"before": "", "after": "both"}, "0x0200": {"before": "limited", "after": ""}, "0x0300": {"before": "limited", "after": "full"}}}]}`},
		{`(g => [g.nodes, g.edges.map(e => [e.a, e.b, plan.stateOf(e, 'before'), plan.stateOf(e, 'after'), plan.effect(e)])])(plan.graph({groups: [
			{a: 'red', b: 'blue', gained: 3, lost: 0, opened: true, closed: false}, {a: 'blue', b: 'blue', gained: 0, lost: 2, opened: false, closed: true}, {a: 'red', b: 'red', gained: 1, lost: 2, opened: false, closed: false}]}))`,
			`[["blue", "red"], [[1, 0, "none", "new", "new: they can talk"], [0, 0, "cut", "none", "cut: they cannot talk any more"], [1, 1, "same", "fewer", "others can talk than before"]]]`},
		{`(g => [g.nodes.length, g.left, g.edges.length])(plan.graph({groups: Array.from({length: 30}, (_, i) => ({a: 'g' + i, b: 'g' + i, gained: i + 1, lost: 0, opened: true, closed: false}))}))`, `[24, 6, 24]`},
		{`plan.room({end_ports: {port: 'a', cap: 128, left: 28}, switch_ports: {port: '', cap: 0, left: 0}}).map(r => [r.port, r.used, r.left])`, `[["a", 100, 28]]`},
		// The matrix.
		{`(g => [g.at(0, 1).talk, g.at(1, 0).talk, g.at(1, 1), matrix.look(g.at(0, 1)).word, matrix.look(g.at(0, 0)).word, matrix.totals(g).bad])(matrix.grid({parties: [{name: 'a'}, {name: 'b'}],
			cells: [{a: 0, b: 1, talk: 'some', verdict: 'violated', pairs: 4, talking: 1}, {a: 0, b: 0, talk: 'all', verdict: 'kept-apart', pairs: 1, talking: 1}]}))`, `["some", "some", null, "violated", "all", 1]`},
		{`['ArrowUp', 'ArrowRight', 'Home', 'PageDown', 'x'].map(k => matrix.step(k, false, 1, 2, 5, 4))`, `[[0, 2], [1, 3], [1, 0], [4, 2], null]`},
		{`[matrix.step('Home', true, 3, 3, 5, 4), matrix.step('End', true, 0, 0, 5, 4), matrix.step('ArrowLeft', false, 0, 0, 5, 4)]`, `[[0, 0], [4, 3], [0, 0]]`},
		// Ranges of P_Keys.
		{`['0x0100-0x01ff', '0x0100', '', '0x0200-0x0100', '1-2', '0x0100-0x0200-0x0300'].map(t => tenantform.range(t) ?? String(tenantform.range(t)))`,
			`[{"first": "0x0100", "last": "0x01ff"}, {"first": "0x0100", "last": "0x0100"}, "undefined", "null", "null", "null"]`},
	} {
		var got, want any
		p.evaluate(x.expression, &got)
		if err := json.Unmarshal([]byte(x.want), &want); err != nil {
			t.Fatalf("%s: %v", x.want, err)
		}
		if !reflect.DeepEqual(got, want) {
			text, _ := json.Marshal(got)
			t.Errorf("%s is\n%s, want\n%s", x.expression, text, x.want)
		}
	}
}
