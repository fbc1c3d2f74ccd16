// A plan as a picture: who talks with whom before and after, who comes into which partition
// and leaves it, and the room that is left.
//
// For tests: [data-plan] is a plan; its data-gained and data-lost are the pairs of ports.

import {count, facts, h, mark, svg, table} from '../dom.js';
import {pictureSaver} from '../save.js';
import {circle, effect, graph, keyTable, room, stateOf} from './plan.js';

const width = 420, height = 300, margin = 120; // of a picture, in its own units

// planView shows the answer of a dry run; names gives P_Keys their names, and say puts names
// beside the GUIDs of a sentence.
export function planView(answer, names = new Map(), say = w => w) {
  const p = answer.plan;
  const parts = [h('h4', {}, 'What changes'), words(answer.words.map(say))];
  if (!p) return h('div', {class: 'plan', 'data-plan': true}, parts);
  // Of an offer that is accepted, the numbers are for the provider.
  const told = p.gained || p.lost || p.ports || p.set;
  parts.push(p.changes && !told ? h('p', {}, h('strong', {}, 'The fabric would be written to.')) : p.changes ? facts([
    ['Pairs of ports that come to talk', number(p.gained, 'good', '+')],
    ['Pairs of ports that are cut', number(p.lost, 'bad', '−')],
    ['Ports whose keys change', p.ports],
    ['Requests', `${p.set} to write, ${p.read_back} to read back`],
  ]) : h('p', {}, h('strong', {}, 'Nothing would be written to the fabric.')));
  if (p.unread) parts.push(h('p', {}, mark('warn', `${count(p.unread, 'place')} could not be read: this may not be all.`)));
  if (p.document) parts.push(document(p.document, names));
  if (p.text) parts.push(h('details', {}, h('summary', {}, 'As ibwarden plan prints it'), h('pre', {class: 'text', tabindex: '0', role: 'region', 'aria-label': 'The plan as text'}, p.text)));
  return h('div', {class: 'plan', 'data-plan': true, 'data-gained': p.gained, 'data-lost': p.lost}, parts);
}

function number(n, kind, sign) { return n ? mark(kind, `${sign}${n.toLocaleString('en')}`) : '0'; }

// words lists sentences, the first of them at once.
export function words(list) {
  if (!list || !list.length) return h('p', {class: 'empty'}, 'Nothing: all is as asked for already.');
  const most = 12;
  const item = w => h('li', {}, w);
  return [h('ul', {class: 'words'}, list.slice(0, most).map(item)),
    list.length > most ? h('details', {}, h('summary', {}, `${list.length - most} more`), h('ul', {class: 'words'}, list.slice(most).map(item))) : null];
}

function document(d, names) {
  return [findings(d), d.changes ? reach(d.reach, names) : null, keys(keyTable(d), names), rooms(d), multicast(d)];
}

function findings(d) {
  const list = [...(d.findings || []).map(f => [f.already ? 'plain' : 'warn', `${f.text || f.kind}${f.already ? ' (so already)' : ''}`]), ...(d.warnings || []).map(w => ['warn', w])];
  if (!list.length) return null;
  return [h('h4', {}, 'To know before'), h('ul', {class: 'words'}, list.map(([kind, text]) => h('li', {}, mark(kind, text))))];
}

function multicast(d) {
  if (!d.multicast || !d.multicast.length) return null;
  return [h('h4', {}, 'Multicast groups'), words(d.multicast.map(m => m.text || `${m.mgid} ${m.what}`))];
}

function name(names, pkey) { return names.get(pkey) ? `${names.get(pkey)} (${pkey})` : pkey; }

// reach is the picture, and beside it the same as a table.
function reach(r, names) {
  if (!r.groups.length) return h('p', {}, 'Who can talk with whom stays as it is.');
  const g = graph(r);
  const total = `${r.pairs_before.toLocaleString('en')} pairs of ports can talk before, ${r.pairs_after.toLocaleString('en')} after.`;
  return [
    h('h4', {}, 'Who can talk with whom'),
    h('p', {}, total, g.left ? ` The picture has the ${g.nodes.length} groups that change most, the table all.` : ''),
    h('div', {class: 'pictures'}, picture(g, 'before', 'Before'), picture(g, 'after', 'After')),
    h('ul', {class: 'legend', 'aria-label': 'What the lines mean'}, [['same', 'can talk'], ['cut', 'is cut'], ['new', 'is new'], ['more', 'more can talk'], ['fewer', 'fewer can talk']].map(([s, t]) =>
      h('li', {}, svg('svg', {viewBox: '0 0 36 10', width: 36, height: 10, 'aria-hidden': 'true'}, svg('line', {x1: 0, y1: 5, x2: 36, y2: 5, class: `edge ${s}`})), t))),
    table('What changes between groups', [
      {title: 'Group', cell: e => e.a, sort: e => e.a},
      {title: 'And', cell: e => e.b, sort: e => e.b},
      {title: 'Pairs gained', cell: e => e.gained, number: true, sort: e => e.gained},
      {title: 'Pairs lost', cell: e => e.lost, number: true, sort: e => e.lost},
      {title: 'Effect', cell: e => mark(e.opened ? 'good' : e.closed ? 'bad' : 'plain', effect({...e, before: !e.opened, after: !e.closed}))},
      {title: 'Over', cell: e => e.over.map(k => name(names, k)).join(', ')},
      {title: 'For example', cell: e => (e.example || []).join(' and ')},
    ], r.groups),
  ];
}

function picture(g, side, title) {
  const places = circle(g.nodes.length, width, height, margin);
  const drawn = g.edges.map(e => ({...e, state: stateOf(e, side)})).filter(e => e.state !== 'none');
  const said = drawn.map(e => `${g.nodes[e.a]} and ${g.nodes[e.b]}${{cut: ', which is cut', new: ', which is new', more: ', of whom more can talk', fewer: ', of whom fewer can talk'}[e.state] || ''}`);
  const whole = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', class: 'reach', 'aria-label': `${title}: ${said.length ? `these can talk: ${said.join('; ')}` : 'none of these can talk'}`},
    drawn.map(e => edge(places, e)),
    g.nodes.map((n, i) => node(places[i], n)));
  return h('figure', {}, h('figcaption', {}, title), whole, pictureSaver(`Who can talk with whom ${side} the change`, whole));
}

function edge(places, e) {
  const a = places[e.a], b = places[e.b];
  const label = {cut: `−${e.lost}`, new: `+${e.gained}`, more: `+${e.gained - e.lost}`, fewer: `−${e.lost - e.gained}`}[e.state];
  if (e.a === e.b) {
    // Ports of one group among themselves: a ring about it.
    return svg('g', {}, svg('circle', {cx: a.x, cy: a.y, r: 15, class: `edge ${e.state}`}), label ? svg('text', {x: a.x, y: a.y + (a.y > height / 2 ? -22 : 30), class: 'amount', 'text-anchor': 'middle'}, label) : null);
  }
  // The amount stands beside the middle of the line.
  const long = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const x = (a.x + b.x) / 2 + (b.y - a.y) / long * 16, y = (a.y + b.y) / 2 - (b.x - a.x) / long * 12 + 4;
  return svg('g', {}, svg('line', {x1: a.x, y1: a.y, x2: b.x, y2: b.y, class: `edge ${e.state}`}),
    label ? svg('text', {x, y, class: 'amount', 'text-anchor': 'middle'}, label) : null);
}

const nameMost = 16; // characters of a name in the picture; the table has the whole

function node(at, text) {
  const dx = at.side === 'start' ? 20 : at.side === 'end' ? -20 : 0;
  const dy = at.side === 'middle' ? (at.y < height / 2 ? -20 : 29) : 4;
  const short = text.length > nameMost ? `${text.slice(0, nameMost - 1)}…` : text;
  return svg('g', {}, svg('circle', {cx: at.x, cy: at.y, r: 8, class: 'party'}), svg('text', {x: at.x + dx, y: at.y + dy, 'text-anchor': at.side, class: 'name'}, short, svg('title', {}, text)));
}

// keys is the table of ports and the partitions that they enter and leave.
function keys(t, names) {
  if (!t.rows.length) return null;
  const cell = c => {
    if (!c) return '';
    if (!c.before) return mark('good', `joins, ${c.after}`);
    if (!c.after) return mark('bad', `leaves, was ${c.before}`);
    return c.before === c.after ? mark('plain', c.after) : mark('warn', `${c.before} becomes ${c.after}`);
  };
  return table('Who joins and who leaves',
    [{title: 'End port', cell: r => r.name, sort: r => r.name}, ...t.pkeys.map(k => ({title: name(names, k), cell: r => cell(r.cells[k])}))], t.rows);
}

function rooms(d) {
  const list = room(d.capacity);
  if (!list.length) return null;
  return [h('h4', {}, 'Room left'), h('ul', {class: 'rooms'}, list.map(r => h('li', {},
    h('span', {}, `${r.what} (${r.port}): ${r.left} of ${r.cap} entries are free`),
    svg('svg', {viewBox: `0 0 ${r.cap} 4`, preserveAspectRatio: 'none', class: 'bar', role: 'img', 'aria-label': `${r.used} of ${r.cap} used`},
      svg('rect', {x: 0, y: 0, width: r.cap, height: 4, class: 'all'}), svg('rect', {x: 0, y: 0, width: r.used, height: 4, class: r.left * 10 < r.cap ? 'used tight' : 'used'})))))];
}
