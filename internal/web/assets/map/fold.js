// What of the map is folded: of a large fabric each box is one thing, with how much is in it, what of that is
// not as it should be, and the shares of the colours; the cables between two boxes are one line.

import {count} from '../dom.js';
import {cableEntry} from './colours.js';

const foldFrom = 2000; // devices from which boxes are folded at first
const between = '|'; // names of boxes in an address

// Folds are which boxes of a map are unfolded: those that somebody chose, or else all of a small fabric.
export class Folds {
  constructor() {
    this.chosen = null; // names of boxes
  }

  // of is 1 for each group of a map that is folded; a map of a single box has none.
  of(map) {
    const small = map.nodes.guid.length < foldFrom;
    return Uint8Array.from(map.groups, g => (map.groups.length > 1 && !(this.chosen ? this.chosen.has(g.name) : small) ? 1 : 0));
  }

  // matter reports whether boxes of a map are folded, or were at first.
  matter(map) { return map.groups.length > 1 && (map.nodes.guid.length >= foldFrom || Boolean(this.chosen)); }

  // set folds or unfolds groups of a map.
  set(map, groups, open) {
    const folded = this.of(map);
    for (const g of groups) folded[g] = open ? 0 : 1;
    this.chosen = new Set(map.groups.filter((_, g) => !folded[g]).map(g => g.name));
  }

  // text is what is unfolded, as an address has it; '' for what is so from the start.
  text(map) {
    if (!this.chosen) return '';
    const names = map.groups.map(g => g.name).filter(name => this.chosen.has(name));
    const first = map.nodes.guid.length < foldFrom ? map.groups.length : 0;
    if (names.length === first) return '';
    return names.length === 0 ? 'none' : names.length === map.groups.length ? 'all' : names.join(between);
  }

  // read takes what text said; names that no box has count for nothing.
  read(map, text) {
    this.chosen = text === '' ? null : new Set(text === 'all' ? map.groups.map(g => g.name) : text === 'none' ? [] : text.split(between));
  }
}

// summaries are what is in each folded box, by group: {hosts, switches, faults, violated, shares: [[index of
// a class, devices]...]}. Shares are of hosts, where the switches are all of one class.
export function summaries(map, folded, classes) {
  const {type, group, state, verdict} = map.nodes, kinds = classes.list.length;
  const out = map.groups.map((_, g) => (folded[g] ? {hosts: 0, switches: 0, faults: 0, violated: 0, shares: []} : null));
  const counts = new Map();
  for (let i = 0; i < type.length; i++) {
    const s = out[group[i]];
    if (!s) continue;
    if (type[i] === 1) s.switches++;
    else s.hosts++;
    if (!['active', 'drained'].includes(map.states[state[i]])) s.faults++;
    if (map.verdicts[verdict[i]] === 'violated') s.violated++;
    const key = group[i] * kinds + classes.of[i];
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  for (const [key, n] of [...counts].sort((a, b) => b[1] - a[1])) {
    const s = out[Math.floor(key / kinds)];
    if (!s.hosts || classes.list[key % kinds].key !== 'switch') s.shares.push([key % kinds, n]);
  }
  return out;
}

// told is a summary in words.
export function told(s) {
  return [s.hosts && count(s.hosts, 'host'), s.switches && count(s.switches, 'switch', 'switches'), wrong(s)].filter(Boolean).join(', ');
}

// wrong is what of a box is not as it should be, in words; '' for nothing.
function wrong(s) { return [s.faults && `${s.faults.toLocaleString('en')} not active`, s.violated && `${s.violated.toLocaleString('en')} violated`].filter(Boolean).join(', '); }

// bundlesOf are the cables between boxes: {a, b: indices of boxes, links, worst: the worst of their states,
// folded: whether both boxes are}. It also returns the cables with an end at a device that is drawn.
export function bundlesOf(map, at) {
  const boxOf = new Int32Array(map.groups.length).fill(-1);
  for (const [i, b] of at.boxes.entries()) boxOf[b.group] = i;
  const {a, b, state} = map.links, {group} = map.nodes;
  const worse = ['active', 'inactive', 'unlisted', 'missing'];
  const found = new Map(), single = [];
  for (let l = 0; l < a.length; l++) {
    if (!at.folded[group[a[l]]] || !at.folded[group[b[l]]]) single.push(l);
    let x = boxOf[group[a[l]]], y = boxOf[group[b[l]]];
    if (x === y || x < 0 || y < 0) continue;
    if (x > y) [x, y] = [y, x];
    const key = x * at.boxes.length + y;
    let bundle = found.get(key);
    if (!bundle) found.set(key, bundle = {a: x, b: y, links: [], worst: 'active', folded: at.boxes[x].folded && at.boxes[y].folded, colour: ''});
    bundle.links.push(l);
    const now = map.link_states[state[l]];
    if (worse.indexOf(now) > worse.indexOf(bundle.worst)) bundle.worst = now;
  }
  return {bundles: [...found.values()], single};
}

// weigh gives bundles the colours of what their cables carry: the highest load, the sum of the errors; of
// those that have a class which is shown alone, its colour. '' is none.
export function weigh(bundles, lines, mode, load, alone) {
  const column = load ? load[mode === 'load' ? 'percent' : 'errors'] : [];
  for (const b of bundles) {
    if (!lines) b.colour = '';
    else if (alone) b.colour = b.links.some(l => lines.list[lines.of[l]].key === alone) ? lines.list.find(c => c.key === alone).colour : '';
    else {
      let all = -1;
      for (const l of b.links) {
        const v = column[l] ?? -1;
        if (v >= 0) all = mode === 'load' ? Math.max(all, v) : Math.max(all, 0) + v;
      }
      b.colour = cableEntry(mode, all).colour;
    }
  }
}

// foldedBoxes draws what is in boxes that are folded, over their rectangles. While the map moves and is not
// zoomed that is a picture, which takes a third of the time of texts.
export function foldedBoxes(c, m, view) {
  if (!m.at.boxes.some(b => b.folded)) return;
  const {scale} = m.view, {ratio, width, height} = m.size, wide = m.at.width * scale, tall = m.at.height * scale;
  const before = m.texts;
  m.texts = before && before.scale === scale ? before : {scale, canvas: null};
  if (m.texts !== before || wide > 2 * width || tall > 2 * height) {
    texts(c, m, view);
    return;
  }
  if (!m.texts.canvas) {
    const p = m.texts.canvas = document.createElement('canvas');
    p.width = Math.ceil(wide * ratio);
    p.height = Math.ceil(tall * ratio);
    const at = p.getContext('2d');
    at.scale(ratio, ratio);
    texts(at, m, {left: 0, top: 0, right: m.at.width, bottom: m.at.height});
  }
  const {canvas} = m.texts;
  c.drawImage(canvas, Math.round(-view.left * scale * ratio) / ratio, Math.round(-view.top * scale * ratio) / ratio, canvas.width / ratio, canvas.height / ratio);
}

function texts(c, m, view) {
  const {scale} = m.view;
  for (const b of m.at.boxes) {
    if (!b.folded || b.x > view.right || b.x + b.width < view.left || b.y > view.bottom || b.y + b.height < view.top) continue;
    const s = m.inside[b.group], size = Math.min(14, Math.max(8, scale * 1.4));
    const left = (b.x - view.left) * scale, top = (b.y - view.top) * scale, width = b.width * scale, tall = b.height * scale;
    if (s.faults || s.violated) {
      c.lineWidth = 2;
      c.strokeStyle = m.colours.bad;
      c.strokeRect(left + 1, top + 1, width - 2, tall - 2);
    }
    const lines = width < 50 ? [] : [m.map.groups[b.group].name, s.hosts ? count(s.hosts, 'host') : '', s.switches ? count(s.switches, 'switch', 'switches') : ''].filter(Boolean);
    if (wrong(s) && lines.length) lines.splice(1, 0, wrong(s));
    const room = Math.max(0, Math.floor((tall - 6) / (size * 1.25)) - 1); // the last is that of the shares
    c.textAlign = 'left';
    c.textBaseline = 'top';
    for (const [k, line] of lines.slice(0, room).entries()) {
      c.font = `${k === 0 ? 600 : 400} ${size}px system-ui, "DejaVu Sans", sans-serif`;
      c.fillStyle = line === wrong(s) ? m.colours.bad : k === 0 ? m.colours.text : m.colours.faint;
      c.fillText(line, left + 4, top + 4 + k * size * 1.25, width - 8);
    }
    shares(c, m, s, left + 4, top + tall - 4 - size, width - 8, size);
  }
}

// shares draws the shares of the colours as a bar, with the letters of what is wide enough.
function shares(c, m, s, x, y, width, tall) {
  const all = s.shares.reduce((sum, [, n]) => sum + n, 0);
  c.textAlign = 'center';
  c.textBaseline = 'middle';
  c.font = `600 ${tall * 0.8}px system-ui, "DejaVu Sans", sans-serif`;
  for (const [k, n] of s.shares) {
    const entry = m.classes.list[k], wide = n / all * width;
    const colour = entry.colour.startsWith('var') ? m.colours.switch : entry.colour;
    c.globalAlpha = m.dim && !m.lines && m.dim !== entry.key ? 0.15 : 1;
    c.fillStyle = c.strokeStyle = colour;
    c.lineWidth = 1;
    if (entry.hollow) c.strokeRect(x + 0.5, y + 0.5, Math.max(0, wide - 1), tall - 1);
    else c.fillRect(x, y, wide, tall);
    if (entry.code && wide > tall * 1.4) {
      c.fillStyle = entry.hollow ? m.colours.text : '#ffffff';
      c.lineWidth = 3;
      c.strokeStyle = entry.hollow ? m.colours.panel : '#000000a0';
      c.strokeText(entry.code, x + wide / 2, y + tall / 2);
      c.fillText(entry.code, x + wide / 2, y + tall / 2);
    }
    c.globalAlpha = 1;
    x += wide;
  }
}
