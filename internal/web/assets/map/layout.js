// Where each device stands on the map. The fabric has levels: hosts below, the switches that
// they are cabled to above them, and so on up. What belongs together, a pod, a rack or a
// subtree, is a box; the switches above all boxes are a band over them. One unit is a host.
// A box that is folded is one thing, however many devices are in it.
//
// There are no forces and no randomness here: the same fabric is always drawn the same.

const gap = 2; // units between two boxes
const margin = 1; // units inside a box
const titleRoom = 3; // units above what is in a box, for its name
const rackRoom = 1; // units above what is in a rack, for its name
const levelRoom = 3; // units between two levels of switches
const switchWide = 2; // units
const oneRow = 8; // boxes that stand side by side, whatever the place is like
const columnsMost = 200; // of boxes
const foldedWide = 14, foldedTall = 8; // units of a folded box

// place puts the devices of a map (GET /map) at positions. aspect is width by height of the
// place that it is shown in, folded has 1 for each group that is folded. It returns {x, y, w, h (typed
// arrays: centre, width and height of each node and, behind all nodes, of each group that is folded),
// shown (places in these of what is seen by itself), boxes: [{group, x, y, width, height, top, folded}],
// racks: [{name, x, y, width, height}], width, height}.
export function place(map, aspect, folded) {
  const n = map.nodes.guid.length, all = n + map.groups.length;
  const out = {nodes: n, x: new Float32Array(all), y: new Float32Array(all), w: new Float32Array(all).fill(1), h: new Float32Array(all).fill(1), shown: [], boxes: [], racks: [], folded, width: 0, height: 0};
  const groups = gather(map, folded);
  const isTop = g => g.hosts === 0 && g.switches === g.higher;
  const boxes = groups.filter(g => !isTop(g)).map(g => boxOf(g, map));
  const tops = groups.filter(g => isTop(g) && g.higher > 0);
  const grid = gridOf(boxes, aspect);
  let y = bandsOf(tops, grid.width, out);
  for (let row = 0; row < grid.rows; row++) {
    let x = 0;
    for (let column = 0; column < grid.columns; column++) {
      const b = boxes[row * grid.columns + column];
      if (b) put(b, x + (grid.wide[column] - b.width) / 2, y, out);
      x += grid.wide[column] + gap;
    }
    y += grid.tall[row] + gap;
  }
  out.width = grid.width;
  out.height = y;
  for (let i = 0; i < n; i++) { // what is in a folded box is where that is
    const g = n + map.nodes.group[i];
    if (folded[g - n]) [out.x[i], out.y[i], out.w[i], out.h[i]] = [out.x[g], out.y[g], out.w[g], out.h[g]];
  }
  return out;
}

// gather counts what is in each group, and sorts the devices of those that are not folded: its leaves with
// their hosts, hosts that are at no leaf of it, and higher switches by level.
function gather(map, folded) {
  const {name, type, level, group} = map.nodes, n = name.length;
  const groups = map.groups.map((g, i) => ({index: i, folded: folded[i], leaves: [], bare: [], loose: [], upper: new Map(), hosts: 0, switches: 0, higher: 0}));
  const order = [];
  for (let i = 0; i < n; i++) {
    const g = groups[group[i]];
    if (type[i] !== 1) g.hosts++;
    else {
      g.switches++;
      if (level[i] > 1) g.higher++;
    }
    if (!g.folded) order.push(i);
  }
  order.sort((a, b) => compare(name[a], name[b]) || a - b);
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

// cellsOf are the parts of a group: its racks and rails, and else a leaf each, with the hosts of each. Leaves
// of which no host is in the same part are the level above these: g.bare.
function cellsOf(g, map) {
  const rack = map.nodes.rack;
  if (!rack) return g.leaves.map(l => ({name: '', leaves: [l.node], hosts: l.hosts}));
  const cells = new Map();
  const cell = (key, name) => {
    if (!cells.has(key)) cells.set(key, {name, leaves: [], hosts: []});
    return cells.get(key);
  };
  const of = (i, leaf) => (rack[i] >= 0 ? cell(rack[i], map.racks[rack[i]]) : leaf >= 0 ? cell(-2 - leaf, '') : null);
  for (const l of g.leaves) for (const i of l.hosts) of(i, l.node).hosts.push(i);
  g.loose = g.loose.filter(i => !of(i, -1)?.hosts.push(i));
  for (const l of g.leaves) of(l.node, l.node).leaves.push(l.node);
  const all = [...cells.values()].sort((a, b) => compare(a.name, b.name)), full = all.filter(c => c.hosts.length);
  if (!full.length) return all;
  g.bare = all.filter(c => !c.hosts.length).flatMap(c => c.leaves);
  return full;
}

// boxOf lays out a group by itself, from its own corner: higher switches in rows, then the
// leaves, each over its hosts.
function boxOf(g, map) {
  if (g.folded) return {group: g.index, folded: true, at: [], racks: [], width: foldedWide, height: foldedTall};
  const cells = cellsOf(g, map);
  const most = Math.max(1, ...cells.map(l => l.hosts.length)), leaves = Math.max(1, ...cells.map(l => l.leaves.length));
  const wide = Math.max(1, Math.ceil(Math.sqrt(most / 2)), leaves > 1 ? 2 * switchWide + 1 : 1);
  const tall = Math.ceil(most / wide), named = cells.some(l => l.name) ? rackRoom : 0;
  const cell = {width: Math.max(wide, switchWide) + 1, height: 0};
  const rows = Math.ceil(leaves / Math.max(1, Math.floor(cell.width / (switchWide + 1))));
  cell.height = named + 2 * rows + tall + 1;
  const columns = cells.length <= 24 ? Math.max(1, cells.length) : Math.ceil(Math.sqrt(cells.length * cell.height / cell.width * 2));
  const looseWide = Math.max(4, Math.ceil(Math.sqrt(g.loose.length * 1.6)));
  const width = Math.max(cells.length ? columns * cell.width : 0, g.loose.length ? Math.min(looseWide, g.loose.length) : 0, 6);
  const at = [], racks = []; // [node, x, y, width]
  let y = titleRoom;
  for (const level of [...g.upper.keys()].sort((a, b) => b - a)) y = spread(g.upper.get(level), 0, width, y, at) + levelRoom - 1;
  if (g.bare.length) {
    const from = at.length;
    y = spread(g.bare, 0, width, y + rackRoom, at) + levelRoom - 1;
    for (const [i, x, cy] of at.slice(from)) if (map.nodes.rack[i] >= 0) racks.push({name: map.racks[map.nodes.rack[i]], x: x - 1.4, y: cy - 1.4, width: 2.8, height: 1.9});
  }
  const inset = (width - columns * cell.width) / 2;
  for (const [i, of] of cells.entries()) {
    const x0 = inset + (i % columns) * cell.width, y0 = y + Math.floor(i / columns) * cell.height + named;
    if (of.name) racks.push({name: of.name, x: x0 + 0.1, y: y0 - named, width: cell.width - 0.2, height: cell.height - 0.4});
    spread(of.leaves, x0, cell.width, y0, at);
    for (const [k, host] of of.hosts.entries()) {
      at.push([host, x0 + (cell.width - wide) / 2 + (k % wide) + 0.5, y0 + 2 * rows + Math.floor(k / wide) + 0.5, 1]);
    }
  }
  y += Math.ceil(cells.length / columns) * cell.height;
  const aside = (width - Math.min(looseWide, g.loose.length)) / 2;
  for (const [k, host] of g.loose.entries()) at.push([host, aside + (k % looseWide) + 0.5, y + Math.floor(k / looseWide) + 0.5, 1]);
  y += Math.ceil(g.loose.length / looseWide);
  return {group: g.index, at, racks, width: width + 2 * margin, height: y + margin};
}

// spread puts switches in rows from x on that are no wider than width, and returns where the rows end.
function spread(nodes, x, width, y, at) {
  const perRow = Math.max(1, Math.min(nodes.length, Math.floor(width / (switchWide + 1))));
  for (const [i, node] of nodes.entries()) {
    const row = Math.floor(i / perRow), inRow = Math.min(perRow, nodes.length - row * perRow);
    at.push([node, x + (i % perRow + 0.5) * width / inRow, y + row * 2 + 0.5, switchWide]);
  }
  return y + Math.ceil(nodes.length / perRow) * 2;
}

// gridOf is how many columns of boxes come nearest to the shape of the place, and how wide and tall
// columns and rows are: as what is in them needs, so that a box that is unfolded moves others little.
function gridOf(boxes, aspect) {
  const sized = columns => {
    const wide = Array.from({length: columns}, () => 8), tall = Array.from({length: Math.ceil(boxes.length / columns)}, () => 4);
    for (const [i, b] of boxes.entries()) {
      wide[i % columns] = Math.max(wide[i % columns], b.width);
      tall[Math.floor(i / columns)] = Math.max(tall[Math.floor(i / columns)], b.height);
    }
    const sum = list => list.reduce((s, x) => s + x + gap, 0);
    return {columns, rows: tall.length, wide, tall, width: sum(wide) - gap, shape: sum(wide) / (sum(tall) + 8)};
  };
  if (boxes.length <= oneRow && aspect >= 1) return sized(Math.max(1, boxes.length));
  let best = sized(1);
  const off = grid => Math.abs(Math.log(grid.shape / aspect));
  for (let columns = 2; columns <= Math.min(boxes.length, columnsMost); columns++) {
    const next = sized(columns);
    if (off(next) < off(best)) best = next;
  }
  return best;
}

// bandsOf lays out groups of switches that are above all boxes, over the whole width, and returns where
// the next thing begins.
function bandsOf(tops, width, out) {
  const perRow = Math.max(1, Math.min(tops.length, Math.floor((width + gap) / (foldedWide + gap))));
  const wide = (width - gap * (perRow - 1)) / perRow;
  let y = 0;
  for (let i = 0; i < tops.length; i += perRow) {
    let tallest = 0;
    for (const [k, g] of tops.slice(i, i + perRow).entries()) {
      const at = [];
      let end = titleRoom;
      if (g.folded) end = foldedTall - margin;
      else for (const level of [...g.upper.keys()].sort((a, b) => b - a)) end = spread(g.upper.get(level), 0, wide - 2 * margin, end, at);
      put({group: g.index, at, racks: [], width: wide, height: end + margin, top: true, folded: g.folded}, k * (wide + gap), y, out);
      tallest = Math.max(tallest, end + margin);
    }
    y += tallest + 2 * gap;
  }
  return y;
}

function put(box, x, y, out) {
  const {group, width, height, at, racks} = box;
  for (const [node, dx, dy, w] of at) {
    out.x[node] = x + margin + dx;
    out.y[node] = y + dy;
    out.w[node] = w;
    out.shown.push(node);
  }
  for (const r of racks) out.racks.push({...r, x: x + margin + r.x, y: y + r.y});
  if (box.folded) {
    const i = out.nodes + group;
    [out.x[i], out.y[i], out.w[i], out.h[i]] = [x + width / 2, y + height / 2, width, height];
    out.shown.push(i);
  }
  out.boxes.push({group, x, y, width, height, top: Boolean(box.top), folded: Boolean(box.folded)});
}
