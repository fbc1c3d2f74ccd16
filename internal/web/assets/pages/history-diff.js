// What changed between two states of objects: by object, by field, and by line where a field
// is a text. Nothing here touches the page.

const linesMost = 600; // lines of a text on each side that are compared one by one

// Words for the kinds of objects in the keys of edits.
const kinds = {
  tenant: 'tenant', token: 'token', port: 'assignment of port', pool: 'range of GUIDs', partition: 'partition', member: 'member',
  approval: 'change that waits', file: 'file', drain: 'drained switch', acknowledgement: 'acknowledgement',
};

// objectName is the object of a key in words: member/0x0010/0x0002c9 is member 0x0002c9 of 0x0010.
export function objectName(key) {
  const [kind, a, b] = key.split('/');
  if (kind === 'removed') return `mark of the removal of ${b} from ${a}`;
  const word = kinds[kind] || kind;
  return b === undefined ? `${word} ${a || ''}`.trim() : `${word} ${b} of ${a}`;
}

// sentences are what a revision changed. Of a change of others a tenant is told its own
// objects alone, by their keys; marks of removals say nothing that is not said beside them.
export function sentences(words) {
  return words.map(w => [w, /^([a-z]+\/\S+) is (made|removed|changed)$/.exec(w)])
    .filter(([, key]) => !key || !key[1].startsWith('removed/'))
    .map(([w, key]) => key ? `${objectName(key[1])} is ${key[2]}` : w);
}

// same reports whether two values of JSON are equal, whatever the order of fields.
export function same(a, b) {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b) return false;
  const x = Object.keys(a), y = Object.keys(b);
  return x.length === y.length && x.every(k => Object.hasOwn(b, k) && same(a[k], b[k]));
}

// fields is what differs between two objects: {name, before, after} with the path of each
// field; undefined where there is none.
export function fields(before, after, path = '') {
  const plain = v => v !== null && typeof v === 'object' && !Array.isArray(v);
  const out = [];
  for (const name of new Set([...Object.keys(before || {}), ...Object.keys(after || {})])) {
    const x = before ? before[name] : undefined, y = after ? after[name] : undefined;
    if (same(x, y)) continue;
    const full = path ? `${path}.${name}` : name;
    if ((plain(x) || x === undefined) && (plain(y) || y === undefined)) out.push(...fields(x, y, full));
    else out.push({name: full, before: x, after: y});
  }
  return out;
}

const marks = e => e.key.startsWith('removed/'); // which come last: they only say that somebody was a member

// between is what a run of revisions, the oldest first, changed in all: edits with the key,
// the object before the first and after the last of them. What is as it was is left out.
export function between(revisions) {
  const all = new Map();
  for (const r of revisions) {
    for (const e of r.edits || []) {
      if (all.has(e.key)) Object.assign(all.get(e.key), {after: e.after, last: r.revision});
      else all.set(e.key, {key: e.key, before: e.before, after: e.after, first: r.revision, last: r.revision});
    }
  }
  return [...all.values()].filter(e => !same(e.before, e.after)).sort((a, b) => marks(a) - marks(b) || (a.key < b.key ? -1 : 1));
}

// lines is the difference of two texts: {sign, text} for each line, sign being '+', '-' or
// ' '; of lines that are the same only two before and after a difference. Where the texts
// differ in too many lines, all of one and then all of the other.
export function lines(before, after) {
  const a = before.split('\n'), b = after.split('\n');
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const x = a.slice(start, a.length - end), y = b.slice(start, b.length - end);
  const middle = x.length > linesMost || y.length > linesMost
    ? [...x.map(text => ({sign: '-', text})), ...y.map(text => ({sign: '+', text}))] : compare(x, y);
  const around = (list, from, to) => list.slice(Math.max(0, from), to).map(text => ({sign: ' ', text}));
  return [...around(a, start - 2, start), ...middle, ...around(a, a.length - end, a.length - end + 2)];
}

// compare finds the longest run of lines that two texts share.
function compare(x, y) {
  const long = Array.from({length: x.length + 1}, () => new Uint16Array(y.length + 1));
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) long[i][j] = x[i] === y[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
  }
  const out = [];
  let i = 0, j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) { out.push({sign: ' ', text: x[i]}); i++; j++; }
    else if (j === y.length || i < x.length && long[i + 1][j] >= long[i][j + 1]) out.push({sign: '-', text: x[i++]});
    else out.push({sign: '+', text: y[j++]});
  }
  return out;
}
