// The matrix of who can talk with whom: what its cells say. Nothing of this module knows of
// the page.

// talks are what a cell can say: a sign, a word, and the colour.
export const talks = {
  all: {sign: '●', word: 'all', kind: 'good'},
  some: {sign: '◐', word: 'some', kind: 'warn'},
  none: {sign: '·', word: 'none', kind: 'plain'},
  unknown: {sign: '?', word: 'not known', kind: 'unknown'},
};

const numbers = new Intl.NumberFormat('en'); // made once: a matrix has thousands of cells
const bad = 'violated'; // the verdict of the proof on pairs that can talk and may not
const weak = 'unenforced'; // no switch would hold a host that forged its table

// grid is the matrix with both of its halves: {parties, cells, at(i, j)} where at gives the cell
// of two parties in either order, or null where it is not told. Of a sparse matrix those that
// are absent are kept apart.
export function grid(m) {
  const n = m.parties.length;
  const cells = new Map(m.cells.map(c => [Math.min(c.a, c.b) * n + Math.max(c.a, c.b), c]));
  const absent = (a, b) => (m.sparse ? {a, b, talk: 'none', pairs: m.parties[a].ports * m.parties[b].ports, talking: 0, verdict: 'kept-apart', partitions: [], reason: 'they share no partition'} : null);
  return {parties: m.parties, cells: m.cells, at: (i, j) => cells.get(Math.min(i, j) * n + Math.max(i, j)) || absent(Math.min(i, j), Math.max(i, j))};
}

// isBad reports whether a cell has ports that can talk and may not.
export function isBad(cell) { return cell.verdict === bad; }

// look is how a cell looks: {sign, word, kind}. What may not be stands before all else; what
// no switch enforces has a second sign.
export function look(cell) {
  if (!cell) return {sign: '', word: 'not told', kind: 'plain'};
  if (isBad(cell)) return {sign: '✕', word: 'violated', kind: 'bad'};
  if (cell.pairs === 0) return {sign: '', word: 'no pair of ports', kind: 'plain'};
  const l = talks[cell.talk] || talks.unknown;
  if (cell.verdict !== weak) return l;
  return {sign: cell.talk === 'none' ? '!' : `${l.sign}!`, word: `${l.word}, and no switch enforces it`, kind: 'warn'};
}

// sentence says a cell in words.
export function sentence(g, i, j) {
  const cell = g.at(i, j);
  const [p, q] = [g.parties[i], g.parties[j]];
  if (!cell) return `${p.name} and ${q.name}: this is not told`;
  const who = i === j ? `ports of ${p.name} among themselves` : `${p.name} and ${q.name}`;
  if (cell.pairs === 0) return `${who}: there is no pair of ports`;
  const n = numbers.format;
  // Against ports that a tenant does not see its own ports are counted.
  const of = unseen(p) || unseen(q) ? 'ports' : 'pairs';
  const what = {all: `all ${n(cell.pairs)} ${of} can talk`, none: `none of ${n(cell.pairs)} ${of} can talk`, some: `${n(cell.talking)} of ${n(cell.pairs)} ${of} can talk`}[cell.talk];
  const more = isBad(cell) ? ', and some of them may not' : cell.verdict === weak ? ', and no switch enforces what is kept apart' : '';
  return `${who}: ${what || `not known for ${n(cell.unread || cell.pairs)} of ${n(cell.pairs)} ${of}`}${more}`;
}

// unseen tells of a party whose ports a tenant does not see: the subnet manager, and all others.
export function unseen(p) { return p.kind === 'others' || p.kind === 'manager'; }

// totals counts cells of two different parties: {all, some, none, unknown, bad}.
export function totals(g) {
  const t = {all: 0, some: 0, none: 0, unknown: 0, bad: 0};
  for (let i = 0; i < g.parties.length; i++) {
    for (let j = i + 1; j < g.parties.length; j++) {
      const c = g.at(i, j);
      if (!c) continue;
      t[c.talk] = (t[c.talk] || 0) + 1;
      if (isBad(c)) t.bad++;
    }
  }
  return t;
}

// step is where a key leads from a cell: [row, column], or null if it leads nowhere. rows and
// columns are how many there are.
export function step(key, ctrl, row, column, rows, columns) {
  const at = {
    ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
    Home: ctrl ? [0, 0] : [row, 0], End: ctrl ? [rows - 1, columns - 1] : [row, columns - 1],
    PageUp: [row - 10, column], PageDown: [row + 10, column],
  }[key];
  if (!at) return null;
  const within = (x, n) => Math.max(0, Math.min(n - 1, x));
  return [within(at[0], rows), within(at[1], columns)];
}
