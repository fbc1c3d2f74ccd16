// What a plan shows as a picture, from the document that ibwarden plan --json prints. Nothing
// of this module knows of the page.

const fullBit = 0x8000; // of a P_Key: full membership
const groupsMost = 24; // groups in the picture; those that change most come first

const hex = n => `0x${n.toString(16).padStart(4, '0')}`;

// base is the number of a partition, of a P_Key: without the bit of full membership.
export function base(pkey) { return hex(parseInt(pkey, 16) & ~fullBit); }

const membership = pkey => (parseInt(pkey, 16) & fullBit ? 'full' : 'limited');

const none = pkey => !pkey || parseInt(pkey, 16) === 0;

// keyTable is who comes into which partition and who leaves it, by end port: {pkeys, rows:
// [{name, guid, cells}]}, with cells[pkey] = {before, after}, each full, limited, both or ''.
// A key that only changes its index is none.
export function keyTable(document) {
  const pkeys = new Set();
  const rows = [];
  for (const p of document.ports) {
    if (p.role !== 'end port') continue;
    const cells = {};
    const put = (pkey, side) => {
      const b = base(pkey);
      pkeys.add(b);
      const cell = cells[b] = cells[b] || {before: '', after: ''};
      const m = membership(pkey);
      cell[side] = cell[side] && cell[side] !== m ? 'both' : m;
    };
    for (const k of p.keys) {
      if (k.what === 'added') put(k.pkey, 'after');
      else if (k.what === 'removed') put(k.pkey, 'before');
      else if (k.what === 'membership') {
        put(k.pkey, 'after');
        if (!none(k.from_pkey)) put(k.from_pkey, 'before');
      }
    }
    if (Object.keys(cells).length) rows.push({name: p.node + (p.port > 1 ? `:${p.port}` : ''), guid: p.port_guid, cells});
  }
  return {pkeys: [...pkeys].sort(), rows};
}

// graph is who talks with whom, before and after, as far as it changes: {nodes, edges: [{a, b,
// before, after, gained, lost, over, example}]} with indices of nodes. before and after say
// whether any pair of ports of the two can talk.
export function graph(reach) {
  const weight = new Map();
  for (const g of reach.groups) for (const x of [g.a, g.b]) weight.set(x, (weight.get(x) || 0) + g.gained + g.lost);
  const nodes = [...weight.keys()].sort((a, b) => weight.get(b) - weight.get(a)).slice(0, groupsMost).sort((a, b) => a.localeCompare(b, 'en', {numeric: true}));
  const at = new Map(nodes.map((n, i) => [n, i]));
  const edges = reach.groups.filter(g => at.has(g.a) && at.has(g.b)).map(g => ({
    a: at.get(g.a), b: at.get(g.b), before: !g.opened, after: !g.closed, gained: g.gained, lost: g.lost, over: g.over, example: g.example,
  }));
  return {nodes, edges, left: weight.size - nodes.length};
}

// circle puts n nodes on a circle, the first at the top: [{x, y, left}], where left says on
// which side the name has room.
export function circle(n, width, height, margin) {
  const rx = width / 2 - margin, ry = height / 2 - 34;
  return Array.from({length: n}, (_, i) => {
    const turn = n === 1 ? 0 : i / n * 2 * Math.PI;
    return {x: n === 1 ? width / 2 : width / 2 + rx * Math.sin(turn), y: n === 1 ? height / 2 : height / 2 - ry * Math.cos(turn), side: Math.abs(Math.sin(turn)) < 0.2 ? 'middle' : Math.sin(turn) > 0 ? 'start' : 'end'};
  });
}

// stateOf is what becomes of a pair of groups in the picture of one side: 'none' (not drawn),
// 'same', 'new', 'more', 'fewer' or 'cut'.
export function stateOf(edge, side) {
  if (side === 'before') return edge.before ? (edge.after ? 'same' : 'cut') : 'none';
  if (!edge.after) return 'none';
  if (!edge.before) return 'new';
  return edge.gained > edge.lost ? 'more' : edge.lost > edge.gained ? 'fewer' : 'same';
}

// effect says in words what becomes of a pair of groups.
export function effect(edge) {
  if (!edge.before && edge.after) return 'new: they can talk';
  if (edge.before && !edge.after) return 'cut: they cannot talk any more';
  if (edge.gained && edge.lost) return 'others can talk than before';
  if (edge.gained) return 'more can talk';
  if (edge.lost) return 'fewer can talk';
  return 'over other partitions';
}

// room is how full the fullest tables will be: [{what, port, used, cap, left}].
export function room(capacity) {
  const list = [];
  for (const [key, what] of [['end_ports', 'The fullest table of an end port'], ['switch_ports', 'The fullest table of a switch port that faces one']]) {
    const c = capacity && capacity[key];
    if (c && c.cap) list.push({what, port: c.port, used: c.cap - c.left, cap: c.cap, left: c.left});
  }
  return list;
}
