// How the map is drawn: what a view shows follows from how near it is.

import {h} from '../dom.js';
import {foldedBoxes} from './fold.js';

const nodesMost = 3000; // devices that are drawn one by one; more come from a picture
const linksMost = 4000; // cables that are drawn one by one; more are drawn as bundles
const cutMost = 400; // cables that lead out of the view which are drawn whole
const stub = 1.2; // units of one of which only the beginning is drawn
const codeScale = 11; // pixels a unit from which letters are on devices
const nameScale = 30; // from which devices have their names
const portScale = 44; // from which cables have the numbers of their ports
const pictureScale = 4; // pixels a unit in the picture
const badMost = 300; // marks of what is not as it should be, far off

// tones resolves the colours of the style for a canvas, which knows no variables.
function tones(element) {
  const probe = h('span', {hidden: true});
  element.append(probe);
  const out = {};
  for (const name of ['page', 'panel', 'text', 'faint', 'line', 'link', 'switch', 'accent', 'bad', 'warn', 'focus']) {
    probe.style.color = `var(--${name})`;
    out[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return out;
}

// paint draws a FabricMap.
export function paint(m) {
  if (!m.colours) {
    m.colours = tones(m.element);
    m.picture = m.texts = null;
  }
  const c = m.canvas.getContext('2d', {alpha: false});
  const {scale, x, y} = m.view, {width, height, ratio} = m.size;
  const view = {left: x, top: y, right: x + width / scale, bottom: y + height / scale};
  c.setTransform(1, 0, 0, 1, 0, 0);
  c.fillStyle = m.colours.panel;
  c.fillRect(0, 0, m.canvas.width, m.canvas.height);
  c.setTransform(scale * ratio, 0, 0, scale * ratio, -x * scale * ratio, -y * scale * ratio);
  const near = cables(m, view);
  bundles(c, m, near);
  boxes(c, m, view, false);
  links(c, m, near);
  boxes(c, m, view, true); // over cables that lead past
  const nodes = visible(m, view);
  if (nodes) nodes.forEach(i => device(c, m, i));
  else picture(c, m);
  if (m.path) way(c, m);
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  titles(c, m, view);
  foldedBoxes(c, m, view);
  if (nodes) names(c, m, nodes);
  if (near && scale >= portScale) ports(c, m, near.whole);
  marks(c, m, view);
}

function boxes(c, m, view, folded) {
  c.lineWidth = 1 / m.view.scale;
  c.strokeStyle = m.colours.line;
  c.fillStyle = m.colours.page;
  for (const b of m.at.boxes) {
    if (b.folded !== folded || b.x > view.right || b.x + b.width < view.left || b.y > view.bottom || b.y + b.height < view.top) continue;
    c.fillRect(b.x, b.y, b.width, b.height);
    c.strokeRect(b.x, b.y, b.width, b.height);
  }
  if (!folded) for (const r of m.at.racks) c.strokeRect(r.x, r.y, r.width, r.height);
}

// visible are the devices in view; null where they are too many to draw each.
function visible(m, view) {
  const list = [], {x, y, nodes, shown} = m.at;
  for (const i of shown) {
    if (i >= nodes || x[i] < view.left - 1 || x[i] > view.right + 1 || y[i] < view.top - 1 || y[i] > view.bottom + 1) continue;
    list.push(i);
    if (list.length > nodesMost) return null;
  }
  return list;
}

function faded(m, i) { return m.dim && !m.lines && m.classes.list[m.classes.of[i]].key !== m.dim; }

function fill(m, entry) { return entry.colour.startsWith('var') ? m.colours.switch : entry.colour; }

// device draws one: hosts are squares, switches bars; what is unknown or old is hollow.
function device(c, m, i) {
  const entry = m.classes.list[m.classes.of[i]];
  const w = m.at.w[i] * 0.84, half = w / 2, x = m.at.x[i], y = m.at.y[i];
  const tall = m.map.nodes.type[i] === 1 ? 0.72 : 0.84;
  c.globalAlpha = faded(m, i) ? 0.15 : 1;
  const old = entry.hollow || ['unread', 'missing'].includes(m.map.states[m.map.nodes.state[i]]);
  if (old) {
    c.lineWidth = 0.12;
    c.setLineDash([0.2, 0.14]);
    c.strokeStyle = fill(m, entry);
    c.strokeRect(x - half + 0.06, y - tall / 2 + 0.06, w - 0.12, tall - 0.12);
    c.setLineDash([]);
  } else {
    c.fillStyle = fill(m, entry);
    c.fillRect(x - half, y - tall / 2, w, tall);
  }
  c.globalAlpha = 1;
}

// picture draws all devices at once, from far off.
function picture(c, m) {
  if (!m.picture) {
    const scale = Math.min(pictureScale, 8000 / Math.max(1, m.at.width, m.at.height));
    const p = document.createElement('canvas');
    p.width = Math.ceil(m.at.width * scale);
    p.height = Math.ceil(m.at.height * scale);
    const at = p.getContext('2d');
    at.setTransform(scale, 0, 0, scale, 0, 0);
    for (const i of m.at.shown) if (i < m.at.nodes) device(at, m, i);
    m.picture = {canvas: p, scale};
  }
  c.imageSmoothingEnabled = m.view.scale < m.picture.scale;
  c.drawImage(m.picture.canvas, 0, 0, m.picture.canvas.width / m.picture.scale, m.picture.canvas.height / m.picture.scale);
}

// ends are the ends of a cable: below the higher device, above the lower one, and by the
// number of its port along a switch.
export function ends(m, l) {
  const {a, b, a_port: ap, b_port: bp} = m.map.links;
  let from = a[l], to = b[l], fromPort = ap[l], toPort = bp[l];
  if (m.at.y[from] > m.at.y[to]) [from, to, fromPort, toPort] = [to, from, toPort, fromPort];
  const level = Math.abs(m.at.y[from] - m.at.y[to]) < 0.1;
  return [
    m.at.x[from] + shift(m, from, fromPort, to), m.at.y[from] + (level ? 0 : edge(m, from)),
    m.at.x[to] + shift(m, to, toPort, from), m.at.y[to] - (level ? 0 : edge(m, to)),
  ];
}

function inFolded(m, i) { return m.at.folded[m.map.nodes.group[i]]; }

function edge(m, i) { return inFolded(m, i) ? m.at.h[i] / 2 : m.map.nodes.type[i] === 1 ? 0.36 : 0.42; }

// shift is how far from the middle of a device its cable is; at a box that is folded, as far as it needs to
// lead straight to the other end.
function shift(m, i, port, other) {
  if (inFolded(m, i)) return Math.max(1 - m.at.w[i] / 2, Math.min(m.at.w[i] / 2 - 1, m.at.x[other] - m.at.x[i]));
  if (m.map.nodes.type[i] !== 1) return 0;
  const ports = Math.max(2, m.ports[i]);
  return ((port - 0.5) / ports - 0.5) * m.at.w[i] * 0.7;
}

// cables are those with an end in view, and of these the ones with both, or no more than a
// few: {whole, cut}. null where they are too many, or too far off, to draw each.
function cables(m, view) {
  if (m.view.scale < 3) return null;
  const {a, b} = m.map.links, {x, y} = m.at, whole = [], cut = [];
  const seen = i => x[i] >= view.left && x[i] <= view.right && y[i] >= view.top && y[i] <= view.bottom;
  for (const l of m.single) {
    const from = seen(a[l]), to = seen(b[l]);
    if (from && to) whole.push(l);
    else if (from || to) cut.push(l);
    if (whole.length + cut.length > linksMost) return null;
  }
  return cut.length > cutMost ? {whole, cut} : {whole: whole.concat(cut), cut: []};
}

// links draws the cables that are near, and of the others those that are not as they should
// be and those of the chosen device.
function links(c, m, near) {
  const {a, b, state} = m.map.links, bad = [], own = [];
  const is = name => l => m.map.link_states[state[l]] === name;
  if (near && m.lines) {
    for (const [i, entry] of m.lines.list.entries()) {
      if (m.dim && m.dim !== entry.key) continue;
      const its = l => m.lines.of[l] === i;
      stroke(c, m, near.whole.filter(its), entry.colour, entry.order > 0 ? 2 : 1, entry.hollow);
      stubs(c, m, near.cut.filter(its), entry.colour);
    }
  } else if (near) {
    stroke(c, m, near.whole.filter(is('active')), m.colours.link, 1, false);
    stubs(c, m, near.cut.filter(is('active')), m.colours.link);
  }
  for (const l of m.single) {
    if (bad.length < badMost && m.map.link_states[state[l]] !== 'active') bad.push(l);
    if (m.chosen >= 0 && (a[l] === m.chosen || b[l] === m.chosen)) own.push(l);
  }
  for (const name of ['inactive', 'unlisted', 'missing']) stroke(c, m, bad.filter(is(name)), name === 'inactive' ? m.colours.warn : m.colours.bad, 2, name === 'missing');
  stroke(c, m, own.filter(is('active')), m.colours.accent, 1.5, false);
}

function stroke(c, m, list, colour, pixels, dashed) {
  if (!list.length) return;
  c.strokeStyle = colour;
  c.lineWidth = pixels / m.view.scale;
  c.setLineDash(dashed ? [5 / m.view.scale, 4 / m.view.scale] : []);
  c.beginPath();
  for (const l of list) {
    const [x1, y1, x2, y2] = ends(m, l);
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
  }
  c.stroke();
  c.setLineDash([]);
}

// stubs are the beginnings of cables that lead out of the view, where these are many.
function stubs(c, m, list, colour) {
  c.strokeStyle = colour;
  c.lineWidth = 1 / m.view.scale;
  c.beginPath();
  for (const l of list) {
    const [x1, y1, x2, y2] = ends(m, l);
    const part = stub / Math.max(stub, Math.hypot(x2 - x1, y2 - y1));
    c.moveTo(x1, y1);
    c.lineTo(x1 + (x2 - x1) * part, y1 + (y2 - y1) * part);
    c.moveTo(x2, y2);
    c.lineTo(x2 + (x1 - x2) * part, y2 + (y1 - y2) * part);
  }
  c.stroke();
}

// bundles are drawn from box to box, wider the more cables they have; where cables are drawn one by one, those
// between boxes that are folded alone.
function bundles(c, m, near) {
  c.globalAlpha = m.bundles.length > 400 ? 0.25 : 0.6;
  for (const b of m.bundles) {
    if (near && !b.folded) continue;
    c.strokeStyle = b.colour || (m.lines ? m.colours.line : m.colours.link);
    if (b.folded && b.worst !== 'active') c.strokeStyle = b.worst === 'inactive' ? m.colours.warn : m.colours.bad;
    c.setLineDash(b.folded && b.worst === 'missing' ? [5 / m.view.scale, 4 / m.view.scale] : []);
    const from = m.at.boxes[b.a], to = m.at.boxes[b.b];
    const [up, down] = from.y <= to.y ? [from, to] : [to, from];
    const x2 = down.x + down.width / 2, x1 = Math.min(Math.max(x2, up.x + 1), up.x + up.width - 1);
    c.lineWidth = Math.min(6, 0.6 + Math.log2(b.links.length) / 2) / m.view.scale;
    c.beginPath();
    c.moveTo(x1, up.top ? up.y + up.height : up.y + up.height / 2);
    c.lineTo(x2, up.top ? down.y : down.y + down.height / 2);
    c.stroke();
  }
  c.setLineDash([]);
  c.globalAlpha = 1;
}

// way draws the way of a packet over all else.
function way(c, m) {
  c.strokeStyle = m.colours.accent;
  c.lineWidth = 4 / m.view.scale;
  c.lineJoin = 'round';
  c.beginPath();
  m.path.forEach((i, k) => (k ? c.lineTo(m.at.x[i], m.at.y[i]) : c.moveTo(m.at.x[i], m.at.y[i])));
  c.stroke();
  for (const [k, i] of m.path.entries()) {
    if (k === 0 || k < m.path.length - 1) continue;
    c.beginPath();
    c.arc(m.at.x[i], m.at.y[i], 0.9, 0, 2 * Math.PI);
    c.stroke();
  }
}

const toPixels = (m, x, y) => [(x - m.view.x) * m.view.scale, (y - m.view.y) * m.view.scale];

function titles(c, m, view) {
  const large = Math.min(15, Math.max(9, m.view.scale * 2)), small = Math.min(12, m.view.scale * 0.8); // racks have room for these
  c.textBaseline = 'top';
  c.textAlign = 'left';
  c.fillStyle = m.colours.faint;
  for (const b of m.at.boxes.concat(m.at.racks)) {
    if (b.folded || b.x > view.right || b.x + b.width < view.left || b.y > view.bottom || b.y + b.height < view.top) continue;
    const [px, py] = toPixels(m, b.x, b.y);
    const size = b.name ? small : large;
    if (b.width * m.view.scale < (b.name ? 30 : 50) || size < 6) continue;
    c.font = `600 ${size}px system-ui, "DejaVu Sans", sans-serif`;
    c.fillText(b.name ?? m.map.groups[b.group].name, px + 4, py + (b.name ? 1 : 3), b.width * m.view.scale - 8);
  }
}

// names writes letters on devices, and nearer their names below them.
function names(c, m, nodes) {
  const {scale} = m.view, {nodes: all} = m.map;
  if (scale < codeScale) return;
  c.textAlign = 'center';
  for (const i of nodes) {
    if (faded(m, i)) continue;
    const [px, py] = toPixels(m, m.at.x[i], m.at.y[i]);
    const entry = m.classes.list[m.classes.of[i]];
    if (entry.code) {
      c.font = `600 ${Math.min(15, scale * 0.5)}px system-ui, "DejaVu Sans", sans-serif`;
      c.textBaseline = 'middle';
      c.lineWidth = 3;
      c.strokeStyle = entry.hollow ? m.colours.panel : '#000000a0';
      c.strokeText(entry.code, px, py);
      c.fillStyle = entry.hollow ? m.colours.text : '#ffffff';
      c.fillText(entry.code, px, py);
    }
    const big = all.type[i] === 1;
    if (scale >= nameScale || big && scale >= nameScale * 0.5) {
      const size = Math.min(13, Math.max(9, scale * (big ? 0.42 : 0.24)));
      const text = short(all.name[i], m.at.w[i] * scale / (size * 0.6));
      if (text.startsWith('…') && scale < nameScale) continue;
      const at = big ? py : py + scale * 0.5 + 1;
      c.font = `${size}px system-ui, "DejaVu Sans", sans-serif`;
      c.textBaseline = big ? 'middle' : 'bottom';
      c.fillStyle = big && !entry.hollow ? m.colours.panel : m.colours.text;
      if (!big) {
        c.lineWidth = 3;
        c.strokeStyle = m.colours.page;
        c.strokeText(text, px, at, m.at.w[i] * scale);
      }
      c.fillText(text, px, at, m.at.w[i] * scale);
    }
  }
}

// short is the end of a name, which tells it from others, where all of it has no room.
function short(name, most) {
  const text = name.replace(/ (HCA|mlx5_|hfi1_)[-_]?\d+$/, '');
  return text.length <= most ? text : `…${text.slice(-Math.max(1, Math.floor(most) - 1))}`;
}

// ports writes the number of the port at each end of a cable.
function ports(c, m, list) {
  c.font = '10px system-ui, "DejaVu Sans", sans-serif';
  c.textAlign = 'center';
  c.fillStyle = m.colours.faint;
  for (const l of list.slice(0, 1200)) {
    const [x1, y1, x2, y2] = ends(m, l);
    const {a, b, a_port: ap, b_port: bp} = m.map.links;
    const swap = m.at.y[a[l]] > m.at.y[b[l]];
    const far = Math.hypot(x2 - x1, y2 - y1) || 1, step = 12 / m.view.scale / far;
    for (const [x, y, port] of [[x1 + (x2 - x1) * step, y1 + (y2 - y1) * step, swap ? bp[l] : ap[l]], [x2 - (x2 - x1) * step, y2 - (y2 - y1) * step, swap ? ap[l] : bp[l]]]) {
      const [px, py] = toPixels(m, x, y);
      c.fillText(port, px, py + 3);
    }
  }
}

// marks ring what is not as it should be, so that it is seen from far off, and what is
// chosen or has the mark of the keyboard.
function marks(c, m, view) {
  const {state} = m.map.nodes;
  let left = badMost;
  for (const i of m.at.shown) {
    const name = m.map.states[state[i]];
    if (i >= m.at.nodes || left === 0 || name === 'active' || m.at.x[i] < view.left || m.at.x[i] > view.right || m.at.y[i] < view.top || m.at.y[i] > view.bottom) continue;
    left--;
    ring(c, m, i, name === 'drained' || name === 'unread' ? m.colours.warn : m.colours.bad, 6, 2);
  }
  if (m.chosen >= 0) ring(c, m, m.chosen, m.colours.accent, 8, 3);
  if (m.cursor >= 0 && document.activeElement === m.canvas) ring(c, m, m.cursor, m.colours.focus, 11, 2);
}

function ring(c, m, i, colour, least, width) {
  const [px, py] = toPixels(m, m.at.x[i], m.at.y[i]);
  c.strokeStyle = colour;
  c.lineWidth = width;
  const half = Math.max(least, m.at.w[i] * m.view.scale / 2 + 2), tall = Math.max(least, m.at.h[i] * m.view.scale / 2 + 2);
  c.strokeRect(px - half, py - tall, 2 * half, 2 * tall);
}
