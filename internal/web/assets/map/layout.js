// Where each device stands on the map. The fabric has levels: hosts below, the switches that
// they are cabled to above them, and so on up. What belongs together, a pod, a rack or a
// subtree, is a box; the switches above all boxes are a band over them. One unit is a host.
//
// There are no forces and no randomness here: the same fabric is always drawn the same.

const gap = 2; // units between two boxes
const margin = 1; // units inside a box
const titleRoom = 3; // units above what is in a box, for its name
const levelRoom = 3; // units between two levels of switches
const switchWide = 2; // units
const oneRow = 8; // boxes that stand side by side, whatever the place is like

// place puts the devices of a map (GET /map) at positions. aspect is width by height of the
// place that it is shown in. It returns {x, y, w (typed arrays by node: centre and width),
// boxes: [{group, x, y, width, height, top}], width, height}.
export function place(map, aspect = 1.6) {
  const n = map.nodes.guid.length;
  const out = {x: new Float32Array(n), y: new Float32Array(n), w: new Float32Array(n).fill(1), boxes: [], width: 0, height: 0};
  const groups = gather(map);
  const boxes = groups.filter(g => g.hosts > 0 || g.leaves.length > 0).map(g => boxOf(g));
  const tops = groups.filter(g => g.hosts === 0 && g.leaves.length === 0);
  const grid = gridOf(boxes, aspect);
  let y = 0;
  for (const g of tops) y = bandOf(g, grid.width, y, out);
  for (const [i, b] of boxes.entries()) {
    const column = i % grid.columns, row = Math.floor(i / grid.columns);
    put(b, column * (grid.cell.width + gap) + (grid.cell.width - b.width) / 2, y + row * (grid.cell.height + gap), out);
  }
  out.width = grid.width;
  out.height = y + grid.rows * (grid.cell.height + gap);
  return out;
}

// gather sorts devices by group: its leaves with their hosts, hosts that are at no leaf of
// it, and higher switches by level.
function gather(map) {
  const {name, type, level, group} = map.nodes;
  const groups = map.groups.map((g, i) => ({index: i, leaves: [], loose: [], upper: new Map(), hosts: 0}));
  const order = [...name.keys()].sort((a, b) => compare(name[a], name[b]) || a - b);
  const under = leavesOf(map);
  const at = new Map(); // leaf of each switch of level 1
  for (const i of order) {
    const g = groups[group[i]];
    if (type[i] !== 1) continue;
    if (level[i] <= 1) {
      const leaf = {node: i, hosts: []};
      at.set(i, leaf);
      g.leaves.push(leaf);
    } else {
      if (!g.upper.has(level[i])) g.upper.set(level[i], []);
      g.upper.get(level[i]).push(i);
    }
  }
  for (const i of order) {
    if (type[i] === 1) continue;
    const g = groups[group[i]], leaf = at.get(under[i]);
    g.hosts++;
    if (leaf && group[leaf.node] === group[i]) leaf.hosts.push(i);
    else g.loose.push(i);
  }
  return groups;
}

// leavesOf is the switch that each host is cabled to, the first where there are several; -1
// where there is none.
function leavesOf(map) {
  const {type} = map.nodes, {a, b} = map.links;
  const under = new Int32Array(type.length).fill(-1);
  for (let l = 0; l < a.length; l++) {
    if (type[a[l]] !== 1 && type[b[l]] === 1 && under[a[l]] < 0) under[a[l]] = b[l];
    if (type[b[l]] !== 1 && type[a[l]] === 1 && under[b[l]] < 0) under[b[l]] = a[l];
  }
  return under;
}

const collator = new Intl.Collator('en', {numeric: true});

function compare(a, b) { return collator.compare(a, b); }

// boxOf lays out a group by itself, from its own corner: higher switches in rows, then the
// leaves, each over its hosts.
function boxOf(g) {
  const most = Math.max(1, ...g.leaves.map(l => l.hosts.length));
  const wide = Math.max(1, Math.ceil(Math.sqrt(most / 2)));
  const tall = Math.ceil(most / wide);
  const cell = {width: Math.max(wide, switchWide) + 1, height: 2 + tall + 1};
  const columns = g.leaves.length <= 24 ? Math.max(1, g.leaves.length) : Math.ceil(Math.sqrt(g.leaves.length * cell.height / cell.width * 2));
  const looseWide = Math.max(4, Math.ceil(Math.sqrt(g.loose.length * 1.6)));
  const width = Math.max(g.leaves.length ? columns * cell.width : 0, g.loose.length ? Math.min(looseWide, g.loose.length) : 0, 6);
  const at = []; // [node, x, y, width]
  let y = titleRoom;
  for (const level of [...g.upper.keys()].sort((a, b) => b - a)) y = spread(g.upper.get(level), width, y, at) + levelRoom - 1;
  const inset = (width - columns * cell.width) / 2;
  for (const [i, leaf] of g.leaves.entries()) {
    const x0 = inset + (i % columns) * cell.width, y0 = y + Math.floor(i / columns) * cell.height;
    at.push([leaf.node, x0 + cell.width / 2, y0 + 0.5, switchWide]);
    for (const [k, host] of leaf.hosts.entries()) {
      at.push([host, x0 + (cell.width - wide) / 2 + (k % wide) + 0.5, y0 + 2 + Math.floor(k / wide) + 0.5, 1]);
    }
  }
  y += Math.ceil(g.leaves.length / columns) * cell.height;
  const aside = (width - Math.min(looseWide, g.loose.length)) / 2;
  for (const [k, host] of g.loose.entries()) at.push([host, aside + (k % looseWide) + 0.5, y + Math.floor(k / looseWide) + 0.5, 1]);
  y += Math.ceil(g.loose.length / looseWide);
  return {group: g.index, at, width: width + 2 * margin, height: y + margin};
}

// spread puts switches in rows that are no wider than width, and returns where the rows end.
function spread(nodes, width, y, at) {
  const perRow = Math.max(1, Math.min(nodes.length, Math.floor(width / (switchWide + 1))));
  for (const [i, node] of nodes.entries()) {
    const row = Math.floor(i / perRow), inRow = Math.min(perRow, nodes.length - row * perRow);
    at.push([node, (i % perRow + 0.5) * width / inRow, y + row * 2 + 0.5, switchWide]);
  }
  return y + Math.ceil(nodes.length / perRow) * 2;
}

// gridOf is how many columns of boxes come nearest to the shape of the place.
function gridOf(boxes, aspect) {
  const cell = {width: Math.max(8, ...boxes.map(b => b.width)), height: Math.max(4, ...boxes.map(b => b.height))};
  let best = {columns: boxes.length <= oneRow && aspect >= 1 ? Math.max(1, boxes.length) : 1, off: Infinity};
  for (let columns = 1; columns <= boxes.length && (boxes.length > oneRow || aspect < 1); columns++) {
    const rows = Math.ceil(boxes.length / columns);
    const shape = columns * (cell.width + gap) / (rows * (cell.height + gap) + 8);
    const off = Math.abs(Math.log(shape / aspect));
    if (off < best.off) best = {columns, off};
  }
  const {columns} = best;
  return {columns, rows: Math.ceil(boxes.length / columns), cell, width: columns * (cell.width + gap) - gap};
}

// bandOf lays out switches that are above all boxes, over the whole width, and returns where
// the next thing begins.
function bandOf(g, width, y, out) {
  const at = [];
  let end = titleRoom;
  for (const level of [...g.upper.keys()].sort((a, b) => b - a)) end = spread(g.upper.get(level), width - 2 * margin, end, at);
  put({group: g.index, at, width, height: end + margin, top: true}, 0, y, out);
  return y + end + margin + 2 * gap;
}

function put(box, x, y, out) {
  for (const [node, dx, dy, w] of box.at) {
    out.x[node] = x + margin + dx;
    out.y[node] = y + dy;
    out.w[node] = w;
  }
  out.boxes.push({group: box.group, x, y, width: box.width, height: box.height, top: Boolean(box.top)});
}
