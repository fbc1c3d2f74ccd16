// The matrix of who can talk with whom, as a table that arrow keys walk: parties by parties,
// and the ports of two of them by ports.
//
// For tests: [data-matrix] is the table; each cell has data-a, data-b, data-talk, data-pairs,
// data-talking and data-verdict as GET /matrix says them. [data-cell] is what was opened;
// [data-do=ports] shows its ports; [data-ports] is their table, its cells with data-from,
// data-to and data-talk.

import {button, count, facts, h, link, mark, notify, remember, replace, settle, time, toHash, unique} from '../dom.js';
import * as api from '../api.js';
import {allPorts} from './portbox.js';
import {label} from './ports.js';
import {tableSaver} from '../save.js';
import {asSentence} from './words.js';
import {grid, isBad, look, sentence, step, talks, totals} from './matrix.js';

const rereadAfter = 1000; // ms from an event to the next read
const portsMost = 100; // rows and columns of ports at once: 10,000 cells are drawn in well under a second

const verdictKinds = {'kept-apart': 'good', unknown: 'unknown', unenforced: 'warn', violated: 'bad'};

// matrix shows the matrix in a place of the page Tenants, and keeps it fresh. The cell that is open
// stands in the address: a and b are its parties, ports the row and column from which their
// ports are shown.
export async function matrix(place, app, params) {
  const m = {app, place, table: h('div'), said: h('p', {role: 'status'}), cell: h('div'), text: '', at: [0, 0]};
  replace(place, h('section', {class: 'panel matrix'}, h('h2', {}, 'Who can talk with whom'),
    h('p', {class: 'hint'}, 'Each cell is two parties: tenants with ports, and other end ports with the same keys. Arrow keys walk the cells, Enter opens one, Escape goes back to it.'),
    key(), m.said, m.table, m.cell));
  m.cell.addEventListener('keydown', e => back(m, e));
  await read(m);
  const at = m.grid ? [params.a, params.b].map(name => m.grid.parties.findIndex(p => p.name === name)) : [-1];
  if (!at.includes(-1)) openCell(m, ...at, params.ports);
  const soon = settle(() => read(m).catch(e => { if (e.status !== 401) notify(e.message, 'bad'); }), rereadAfter);
  app.onEvent(() => soon());
}

function key() {
  const looks = [...Object.values(talks), {sign: '!', word: 'no switch enforces it', kind: 'warn'}, {sign: '✕', word: 'violated: some can talk and may not', kind: 'bad'}];
  return h('ul', {class: 'legend', 'aria-label': 'What the signs mean'}, looks.map(l => h('li', {}, h('span', {class: `sample ${l.kind}`, 'aria-hidden': 'true'}, l.sign), l.word)));
}

async function read(m) {
  let answer;
  try {
    answer = await api.get('/matrix', {}, {background: true});
  } catch (e) {
    if (e.status === 401) throw e;
    replace(m.said, h('span', {class: 'fault'}, e.message));
    return;
  }
  const item = answer.item || answer;
  const text = JSON.stringify([item.parties, item.cells]);
  replace(m.said, summary(grid(item)), item.read_at ? [' Read ', time(item.read_at), '.'] : null);
  if (text === m.text) return;
  m.text = text;
  m.grid = grid(item);
  draw(m);
}

function summary(g) {
  const t = totals(g);
  return `${count(g.parties.length, 'party', 'parties')}; of the pairs of two of them ${t.none} cannot talk, in ${t.some} some ports can, in ${t.all} all, ${t.unknown} are not known${t.bad ? `; ${t.bad} violated` : ''}.`;
}

// draw makes the table. One cell is in the order of the Tab key, the one where the keys were
// last.
function draw(m) {
  const g = m.grid, n = g.parties.length;
  if (!n) {
    replace(m.table, h('p', {class: 'empty'}, 'There are no end ports to show.'));
    return;
  }
  const focused = m.table.contains(document.activeElement);
  m.at = [Math.min(m.at[0], n - 1), Math.min(m.at[1], n - 1)];
  const id = unique('matrix');
  const rows = g.parties.map((p, i) => h('tr', {}, h('th', {scope: 'row', class: p.kind, title: p.name}, p.name), g.parties.map((q, j) => cellOf(g, i, j, m.at))));
  const body = h('tbody', {}, rows);
  m.body = body;
  const open = td => (m.open || openCell)(m, Number(td.dataset.row), Number(td.dataset.column));
  walk(body, m.at, n, n, open);
  const whole = h('table', {role: 'grid', 'data-matrix': true, 'aria-labelledby': id},
    h('caption', {id, class: 'hidden'}, 'Who can talk with whom'),
    h('thead', {}, h('tr', {}, h('td', {'data-word': 'Party'}), g.parties.map(p => h('th', {scope: 'col', class: p.kind, title: p.name}, h('span', {}, p.name))))), body);
  replace(m.table, h('div', {class: 'table cells'}, whole), tableSaver('Who can talk with whom', whole));
  if (focused) cellAt(body, ...m.at).focus();
}

// matrixOf shows a matrix that is not of now: a cell that is opened says what it is, and leads nowhere.
export function matrixOf(item) {
  const said = h('p', {role: 'status'});
  const m = {table: h('div'), at: [0, 0], grid: grid(item), open: (m, i, j) => replace(said, `${sentence(m.grid, i, j)}.`)};
  draw(m);
  return h('div', {class: 'matrix'}, key(), h('p', {}, summary(m.grid)), m.table, said);
}

function cellOf(g, i, j, at) {
  const c = g.at(i, j), l = look(c), text = sentence(g, i, j);
  return h('td', {
    role: 'gridcell', tabindex: i === at[0] && j === at[1] ? '0' : '-1', class: `${l.kind}${i === j ? ' own' : ''}`, title: text, 'aria-label': text, 'data-word': l.word,
    'data-row': i, 'data-column': j, 'data-a': c && c.a, 'data-b': c && c.b, 'data-talk': c && c.talk, 'data-pairs': c && c.pairs, 'data-talking': c && c.talking, 'data-verdict': c && c.verdict,
  }, l.sign);
}

function cellAt(body, row, column) { return body.rows[row].cells[column + 1]; }

// walk lets arrow keys go from cell to cell, and Enter, Space and the mouse open one.
function walk(body, at, rows, columns, open) {
  const go = (row, column) => {
    cellAt(body, ...at).tabIndex = -1;
    at[0] = row;
    at[1] = column;
    const td = cellAt(body, row, column);
    td.tabIndex = 0;
    td.focus();
  };
  body.addEventListener('keydown', e => {
    const td = e.target.closest('td[role=gridcell]');
    if (!td || e.altKey || e.metaKey) return;
    if (e.key === 'Enter' || e.key === ' ') {
      e.preventDefault();
      open(td);
      return;
    }
    const to = step(e.key, e.ctrlKey, at[0], at[1], rows, columns);
    if (!to) return;
    e.preventDefault();
    go(...to);
  });
  body.addEventListener('click', e => {
    const td = e.target.closest('td[role=gridcell]');
    if (!td) return;
    go(Number(td.dataset.row), Number(td.dataset.column));
    open(td);
  });
}

// openCell tells all that is known of a cell below the matrix; from is where its ports are shown
// from, "0,0", if they are.
function openCell(m, i, j, from = '') {
  const g = m.grid, c = g.at(i, j), a = g.parties[i], b = g.parties[j];
  remember('tenants', {a: a.name, b: b.name, ports: from}, true);
  cellAt(m.body, ...m.at).tabIndex = -1;
  Object.assign(m.at, [i, j]);
  cellAt(m.body, i, j).tabIndex = 0;
  for (const td of m.body.querySelectorAll('[aria-selected]')) td.removeAttribute('aria-selected');
  cellAt(m.body, i, j).setAttribute('aria-selected', 'true');
  const title = h('h3', {tabindex: '-1'}, `${sentence(g, i, j)}.`);
  const ports = h('div');
  replace(m.cell, h('div', {class: 'opened', 'data-cell': `${i} ${j}`}, title,
    c ? facts([
      ['Verdict of the proof', c.verdict ? mark(verdictKinds[c.verdict] || 'unknown', c.verdict) : undefined],
      ['Over', (c.partitions || []).join(', ')],
      ['Pairs that may not', c.violations ? c.violations.toLocaleString('en') : undefined],
      ['Pairs that the policy lets talk', c.allowed === undefined ? undefined : c.allowed.toLocaleString('en')],
      ['Pairs not read whole', c.unread ? c.unread.toLocaleString('en') : undefined],
      [a.name, party(a)], i === j ? [] : [b.name, party(b)],
    ].filter(x => x.length)) : null,
    c && c.reason ? h('p', {}, asSentence(c.reason)) : null,
    c && c.witness ? witness(c) : c && a.example && b.example && a.example !== b.example ? h('p', {}, whyLink(a.example, b.example)) : null,
    h('div', {class: 'actions'}, a.ports && b.ports ? button('Port by port', () => showPorts(m, ports, a, b), {'data-do': 'ports'}) : null,
      [a, b].filter((p, k, list) => p.kind === 'tenant' && list.indexOf(p) === k).map(p => link(toHash('tenants', {name: p.name}), `Tenant ${p.name}`))),
    ports));
  title.focus();
  const [row, column] = from.split(',').map(n => Math.max(0, parseInt(n, 10) || 0));
  if (from) showPorts(m, ports, a, b, row, column).catch(e => notify(e.message, 'bad'));
}

// back goes from what was opened back to its cell.
function back(m, e) {
  if (e.key !== 'Escape' || !m.cell.firstChild) return;
  replace(m.cell);
  remember('tenants', {a: '', b: '', ports: ''}, true);
  cellAt(m.body, ...m.at).focus();
}

// witness is two ports that can talk, as an example or as what may not be. Their names come
// when the list of ports is there.
function witness(c) {
  const {from, to, pkey} = c.witness;
  const name = guid => {
    const place = h('span', {}, h('code', {}, guid));
    allPorts().then(ports => {
      const p = ports.byGUID.get(guid);
      if (p) replace(place, label(p), ' ', h('code', {}, guid));
    }, () => {}); // the GUID stands for itself
    return place;
  };
  return h('p', {'data-witness': true}, isBad(c) ? 'Witness: ' : 'For example: ', name(from), ' and ', to ? name(to) : 'a port of others', pkey ? [' over ', h('code', {}, pkey)] : null, '. ', to ? whyLink(from, to) : null);
}

function party(p) {
  if (p.kind === 'others') return 'all ports that you do not see';
  if (p.kind === 'manager') return 'the port of the subnet manager';
  return `${count(p.ports, 'port')}${p.owner && p.owner !== p.name ? `, of ${p.owner}` : ''}${p.partitions && p.partitions.length ? `, in ${p.partitions.join(', ')}` : ', in no partition'}`;
}

function whyLink(from, to) { return link(toHash('why', {from, to}), 'Why', h('span', {class: 'hidden'}, ` ${from} and ${to}`)); }

// showPorts is the matrix of the ports of two parties, from a row and a column on.
async function showPorts(m, place, a, b, row = 0, column = 0) {
  remember('tenants', {ports: `${row},${column}`}, true);
  const answer = await api.get('/matrix/ports', {a: a.name, b: b.name, limit: portsMost, row, column});
  const p = answer.item || answer;
  if (!p.rows.length || !p.columns.length) {
    replace(place, h('p', {class: 'empty'}, 'There are no ports to show.'));
    return;
  }
  const said = h('p', {role: 'status', class: 'hint'}, 'Arrow keys walk the cells; Enter asks why.');
  const body = h('tbody', {}, p.rows.map((r, i) => h('tr', {}, h('th', {scope: 'row'}, r.name), p.columns.map((c, j) => portCell(r, c, p.cells[i][j], i, j)))));
  body.addEventListener('focusin', e => { if (e.target.matches('td[role=gridcell]')) replace(said, e.target.title); });
  walk(body, [0, 0], p.rows.length, p.columns.length, td => { if (td.dataset.from !== td.dataset.to) m.app.go('why', {from: td.dataset.from, to: td.dataset.to}); });
  const id = unique('ports');
  const part = (name, list, more, from) => (more || from ? `${from + 1} to ${from + list.length} of ${from + list.length + more} ports of ${name}` : '');
  const turn = (text, r, c) => button(text, async () => { await showPorts(m, place, a, b, Math.max(0, r), Math.max(0, c)); place.querySelector('[data-ports]').scrollIntoView({block: 'nearest'}); });
  const title = `Ports of ${a.name} and of ${b.name}`;
  const whole = h('table', {role: 'grid', 'data-ports': true, 'aria-labelledby': id}, h('caption', {id}, title),
    h('thead', {}, h('tr', {}, h('td', {'data-word': 'Port'}), p.columns.map(c => h('th', {scope: 'col'}, h('span', {}, c.name))))), body);
  replace(place, said, h('p', {class: 'hint'}, [part(a.name, p.rows, p.rows_more || 0, row), part(b.name, p.columns, p.columns_more || 0, column)].filter(Boolean).join(', ')),
    h('div', {class: 'actions'}, row ? turn('Rows before', row - portsMost, column) : null, p.rows_more ? turn('Rows after', row + portsMost, column) : null,
      column ? turn('Columns before', row, column - portsMost) : null, p.columns_more ? turn('Columns after', row, column + portsMost) : null),
    h('div', {class: 'table cells'}, whole), tableSaver(title, whole));
}

// portCell is two ports: over which partitions they can talk, or why they cannot.
function portCell(r, c, cell, i, j) {
  const self = r.guid === c.guid;
  const l = self ? {sign: '', word: 'the same port', kind: 'plain'} : look({verdict: 'kept-apart', ...cell});
  const more = cell.reason || (cell.partitions || []).join(', ') || (cell.talk === 'none' && !self ? 'they share no partition' : '');
  const text = self ? `${r.name}: the same port` : `${r.name} and ${c.name}: ${{none: 'cannot talk', all: 'can talk'}[l.word] || l.word}${more ? `: ${more}` : ''}`;
  return h('td', {role: 'gridcell', tabindex: i === 0 && j === 0 ? '0' : '-1', class: l.kind, title: text, 'aria-label': text, 'data-word': l.word, 'data-row': i, 'data-column': j, 'data-from': r.guid, 'data-to': c.guid, 'data-talk': cell.talk, 'data-verdict': cell.verdict}, l.sign);
}
