// Why: whether two end ports can talk, why, what would change it, and the way of a packet
// from hop to hop. The two ports stand in the hash (#/why?from=GUID&to=GUID&sl=0), so that
// other pages lead here.
//
// For tests: [data-cause] has the cause of the answer, [data-way] each way with its P_Key and
// direction, [data-remedy] each remedy.

import {button, facts, field, h, link, mark, notify, replace, table, time, toHash} from '../dom.js';
import * as api from '../api.js';
import {showWay} from '../map/way.js';
import {allPorts, portBox} from '../parts/portbox.js';
import {asSentence} from '../parts/words.js';
import {tableSaver} from '../save.js';

const slMost = 15; // service levels are 0 to 15

const causes = {
  talk: ['good', 'They can talk'],
  'no-partition': ['bad', 'They cannot talk: no partition in common'],
  'both-limited': ['bad', 'They cannot talk: both are limited members'],
  stopped: ['bad', 'They cannot talk: packets are stopped on the way'],
  unknown: ['unknown', 'It is not known'],
};

const results = {pass: 'good', stop: 'bad', off: 'plain', unknown: 'unknown'};

// ways lists the ways of an answer, for whoever draws them: {pkey, name, direction,
// disposition, reason, hops: [{node, name, in, out}]}. A tenant is not told of hops.
export function ways(answer) {
  const list = [];
  for (const s of answer.shared) {
    for (const direction of ['there', 'back']) {
      const w = s[direction];
      if (w) list.push({pkey: s.pkey, name: s.name, direction, disposition: w.disposition, reason: w.reason || '', hops: w.hops});
    }
  }
  return list;
}

async function render(main, params, app) {
  const ports = await allPorts();
  // The focus goes on when the key that chose has had its effect here.
  const from = portBox('From', ports, () => { if (!to.value()) setTimeout(() => to.control.focus()); else ask(); });
  const to = portBox('To', ports, () => { if (from.value()) ask(); });
  const sl = field('Service level', h('input', {type: 'number', min: '0', max: String(slMost), step: '1', inputmode: 'numeric'}), 'Empty: the one of the partition.');
  const ask = () => {
    if (!from.value()) {
      from.fault('Want an end port: a name, GUID or LID.');
      from.control.focus();
      return;
    }
    app.go('why', {from: from.value(), to: to.value(), sl: sl.control.value});
  };
  const swap = () => {
    const [a, b] = [from.value(), to.value()];
    from.set(b);
    to.set(a);
    if (a && b) ask();
  };
  from.set(params.from);
  to.set(params.to);
  sl.control.value = params.sl || '';
  const answer = h('div', {class: 'answer', 'aria-live': 'polite'});
  replace(main,
    h('form', {class: 'panel', role: 'search', 'aria-label': 'Two end ports', onsubmit: e => { e.preventDefault(); ask(); }},
      h('div', {class: 'columns'}, from, to, sl),
      h('div', {class: 'actions'}, h('button', {type: 'submit', class: 'primary'}, 'Ask'), button('Swap the two', swap))),
    answer);
  if (params.from && params.to) await showAnswer(answer, params, app, from, to);
  else if (params.from) await showPeers(answer, params, from);
  else replace(answer, h('p', {class: 'hint'}, 'Choose two end ports to see whether they can talk, and why. With the first alone, all that it can talk with are listed.'));
}

// refused puts what the service says next to the box that it speaks of.
function refused(e, from, to) {
  const at = e.fields && e.fields.some(f => f.field === 'query.to') && to ? to : from;
  at.fault(e.message);
  at.control.focus();
}

async function showAnswer(place, params, app, from, to) {
  let a;
  try {
    a = await api.item('/why', {from: params.from, to: params.to, sl: params.sl});
  } catch (e) {
    if (e.status === 401) throw e;
    refused(e, from, to);
    return;
  }
  const [kind, words] = causes[a.cause] || causes.unknown;
  replace(place,
    h('section', {class: 'panel', 'data-cause': a.cause},
      h('h2', {}, mark(kind, words)),
      h('p', {class: 'sentence'}, asSentence(a.sentence)),
      facts([['From', port(a.from)], ['To', port(a.to)], ['Read', time(a.read_at)]]),
      remedies(a, app)),
    a.shared.length ? shared(a) : null,
    ways(a).map((w, i) => way(w, a, i === 0)));
}

function port(p) { return h('span', {}, p.name, ' ', h('code', {}, p.guid), p.lid ? ` LID ${p.lid}` : ''); }

function remedies(a, app) {
  if (!a.remedies.length) return null;
  const may = !app.session.read_only;
  return [
    h('h3', {}, a.remedies.length > 1 ? 'Each of these by itself would let them talk' : 'This would let them talk'),
    h('ul', {class: 'remedies'}, a.remedies.map(r => h('li', {'data-remedy': r.kind}, r.text,
      r.file ? h('span', {class: 'hint'}, ' (the policy file has this partition: it is changed there)') : null,
      r.port && r.pkey && !r.file && may ? [' ', link(toHash('change', changeOf(r, a)), 'Do it', h('span', {class: 'hidden'}, `: ${r.text}`))] : null))),
  ];
}

// changeOf are the parameters of the page Change for a remedy. A port that is added becomes a
// full member: as a limited one it might meet another limited one.
function changeOf(r, a) {
  const names = {[a.from.guid]: a.from.name, [a.to.guid]: a.to.name};
  return {partition: r.pkey, add: r.port, membership: 'full', why: `so that ${names[a.from.guid]} and ${names[a.to.guid]} can talk`};
}

function shared(a) {
  const member = full => (full ? 'full' : 'limited');
  // That two limited members of a partition cannot talk is as it should be, where they can over another.
  const end = w => (w ? mark(dispositionKind(w.disposition), w.disposition) : mark(a.cause === 'talk' ? 'plain' : 'bad', 'both are limited'));
  return table('Partitions of which both hold a key', [
    {title: 'Partition', cell: s => s.name || s.pkey},
    {title: 'P_Key', cell: s => h('code', {}, s.pkey)},
    {title: a.from.name, cell: s => member(s.from_full)},
    {title: a.to.name, cell: s => member(s.to_full)},
    {title: 'There', cell: s => end(s.there)},
    {title: 'Back', cell: s => end(s.back)},
  ], a.shared);
}

function dispositionKind(d) { return d === 'delivered' ? 'good' : d === 'unknown' ? 'unknown' : 'bad'; }

// onMap is the place of the map of a way, and what shows it there; the first is shown at once.
function onMap(w, shown) {
  const place = h('div', {class: 'way', 'data-pkey': w.pkey, 'data-direction': w.direction});
  if (!w.hops.length) return place;
  if (shown) showWay(place, w.hops).catch(e => notify(e.message, 'bad'));
  else replace(place, button('Show it on the map', () => showWay(place, w.hops)));
  return place;
}

// way shows one way: on the map, and as a table of hops and checks.
function way(w, a, shown) {
  const [first, last] = w.direction === 'there' ? [a.from.name, a.to.name] : [a.to.name, a.from.name];
  const title = `${first} to ${last} over ${w.name || w.pkey}`;
  return h('section', {class: 'panel', 'data-way': `${w.pkey} ${w.direction}`},
    h('h2', {}, title, ' ', mark(dispositionKind(w.disposition), w.disposition)),
    w.reason ? h('p', {}, asSentence(w.reason)) : null,
    onMap(w, shown),
    w.hops.length ? h('ol', {class: 'hops', 'aria-label': `Nodes on the way: ${title}`}, w.hops.map(hop => h('li', {}, hop.in ? h('span', {class: 'port'}, hop.in) : null, h('span', {}, hop.name), hop.out ? h('span', {class: 'port'}, hop.out) : null))) : null,
    w.hops.length ? checks(w, title) : null);
}

// checks is the table of all that a packet passes: a group of rows for each hop.
function checks(w, title) {
  const rows = w.hops.map((hop, i) => h('tbody', {}, (hop.checks.length ? hop.checks : [null]).map((c, j) => h('tr', {},
    j === 0 ? h('th', {scope: 'rowgroup', rowspan: Math.max(hop.checks.length, 1)}, `${i + 1}. ${hop.name}`, h('span', {class: 'hint'}, ports(hop))) : null,
    c ? [h('td', {class: 'number'}, c.port), h('td', {}, c.check), h('td', {}, mark(results[c.result] || 'unknown', c.result)), h('td', {}, c.entry)]
      : h('td', {colspan: 4, class: 'empty'}, 'No checks.')))));
  const whole = h('table', {}, h('caption', {class: 'hidden'}, `Checks: ${title}`),
    h('thead', {}, h('tr', {}, ['Hop', 'Port', 'Check', 'Result', 'What decides'].map((t, i) => h('th', {scope: 'col', class: i === 1 ? 'number' : null}, t)))),
    rows);
  return h('details', {open: w.disposition !== 'delivered'}, h('summary', {}, 'Check by check'),
    h('div', {class: 'table', tabindex: '0', role: 'region', 'aria-label': `Checks: ${title}`}, whole), tableSaver(`Checks: ${title}`, whole));
}

function ports(hop) {
  const list = [hop.in ? `in ${hop.in}` : 'starts here', hop.out ? `out ${hop.out}, VL ${hop.vl ?? 0}` : 'ends here'];
  return ` ${list.join(', ')}`;
}

// showPeers lists whom a port can talk with.
async function showPeers(place, params, from) {
  let peers;
  try {
    peers = await api.all('/peers', {port: params.from, sl: params.sl});
  } catch (e) {
    if (e.status === 401) throw e;
    refused(e, from);
    return;
  }
  replace(place, table(`End ports whose keys match those of ${from.control.value}${peers.more ? ' (the first 20,000)' : ''}`, [
    {title: 'End port', cell: p => p.name, sort: p => p.name},
    {title: 'GUID', cell: p => h('code', {}, p.guid), sort: p => p.guid},
    {title: 'LID', cell: p => p.lid, number: true, sort: p => p.lid},
    {title: 'Packets', cell: p => (p.talks ? mark('good', 'get through') : mark('bad', 'do not get through')), sort: p => String(p.talks)},
    {title: 'Over', cell: p => p.over.map(o => o.name || o.pkey).join(', '), sort: p => p.over.map(o => o.name).join()},
    {title: 'Why', cell: p => link(toHash('why', {from: params.from, to: p.guid, sl: params.sl}), 'Why', h('span', {class: 'hidden'}, ` ${p.name}`))},
  ], peers, {empty: 'It can talk with nobody.'}));
}

export default {name: 'why', title: 'Why', render};
