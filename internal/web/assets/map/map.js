// The map: a canvas that shows a fabric from the whole down to a port. From far off, boxes
// are drawn from one picture and cables as bundles between boxes; nearer, each device and
// each cable; nearer still, names and numbers of ports. Boxes of a large fabric are folded:
// what is in one is seen when it is unfolded.

import {h, replace} from '../dom.js';
import {place} from './layout.js';
import {cableClasses, classes, onCables} from './colours.js';
import {paint} from './paint.js';
import {bundlesOf, Folds, summaries, told, weigh} from './fold.js';

const zoomMost = 120; // pixels a unit
const zoomStep = 1.3;

// FabricMap shows a map (GET /map) in an element. onSelect(kind, index) is called with
// 'node', 'box' or '' when something is chosen. say(text) tells screen readers.
export class FabricMap {
  constructor(onSelect, say) {
    this.onSelect = onSelect;
    this.say = say;
    this.canvas = h('canvas', {
      tabindex: '0', role: 'application', 'aria-label': 'Map of the fabric. Arrow keys go from device to device, Enter shows one or unfolds a box, f folds it, plus and minus zoom, zero shows the whole. The search and the table beside it have the same devices.',
    });
    this.element = h('div', {class: 'map'}, this.canvas);
    this.view = {x: 0, y: 0, scale: 1}; // unit at the left and top edge; pixels a unit
    this.cursor = -1; // node, or box that is folded, with the keyboard's mark
    this.chosen = -1;
    this.dim = null; // key of the class that is shown alone
    this.path = null; // nodes of a packet's way, in order
    this.mode = 'party';
    this.load = null; // the answer of GET /map/load
    this.lines = null; // classes of cables, where colours are theirs
    this.map = null;
    this.frames = 0; // drawn so far
    this.folds = new Folds();
    this.bundles = []; // cables between boxes
    this.single = []; // cables with an end at a device that is not folded
    this.onMove = () => {}; // called when the view changes
    this.onFold = () => {}; // called when somebody folds or unfolds boxes
    this.fitted = true;
    this.listen();
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(this.element);
    this.theme = () => {
      if (!this.element.isConnected) this.close(); // the page was left
      this.colours = null;
      this.stale();
    };
    document.addEventListener('themechange', this.theme);
    this.dark = window.matchMedia('(prefers-color-scheme: dark)');
    this.dark.addEventListener('change', this.theme);
  }

  close() {
    this.closed = true;
    this.observer.disconnect();
    document.removeEventListener('themechange', this.theme);
    this.dark.removeEventListener('change', this.theme);
  }

  // show puts a map in the place of the one before; what is chosen stays chosen.
  show(map) {
    const chosen = this.chosen >= 0 ? this.map.nodes.guid[this.chosen] : '';
    const before = this.map;
    this.map = map;
    this.index = new Map(map.nodes.guid.map((g, i) => [g, i]));
    this.chosen = this.index.get(chosen) ?? -1;
    this.cursor = -1;
    this.ports = mostPorts(map);
    this.lay();
    if (!before || this.fitted) this.whole();
  }

  // lay puts everything in its place, by what is folded.
  lay() {
    const {width, height} = this.element.getBoundingClientRect();
    this.at = place(this.map, Math.min(3, Math.max(0.6, (width || 800) / (height || 500))), this.folds.of(this.map));
    Object.assign(this, bundlesOf(this.map, this.at));
    this.cursor = -1;
    this.recolour();
  }

  // unfold has boxes seen from the inside; groups are indices.
  unfold(groups, open = true) {
    this.folds.set(this.map, groups, open);
    this.lay();
    this.onFold();
  }

  // unfoldAll unfolds all boxes, or folds them.
  unfoldAll(open) {
    this.unfold(this.map.groups.map((_, g) => g), open);
    this.whole();
    this.say(open ? 'All boxes are unfolded.' : 'All boxes are folded.');
  }

  // fold has what an address says unfolded.
  fold(text) {
    if (this.folds.text(this.map) === text) return;
    this.folds.read(this.map, text);
    this.lay();
  }

  // toggle folds a box, or unfolds it and shows it.
  toggle(group) {
    const open = Boolean(this.at.folded[group]), text = this.map.groups[group].name;
    this.unfold([group], open);
    const box = this.at.boxes.find(b => b.group === group);
    if (open) this.frame(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
    else this.whole();
    this.cursor = open ? this.at.shown.find(i => this.map.nodes.group[i] === group) ?? -1 : this.at.nodes + group;
    this.say(`${text} is ${open ? 'unfolded' : 'folded'}.`);
  }

  // colour chooses what colours say; load is the answer of GET /map/load, of this map.
  colour(mode, load = this.load) {
    this.mode = mode;
    this.load = load;
    this.recolour();
  }

  recolour() {
    if (!this.map) return;
    this.classes = classes(this.map, this.mode);
    this.lines = onCables.has(this.mode) ? cableClasses(this.map, this.mode, this.load) : null;
    this.inside = summaries(this.map, this.at.folded, this.classes);
    this.alone(this.legends().some(c => c.key === this.dim) ? this.dim : null);
  }

  // legends are the classes that the colours stand for.
  legends() { return (this.lines || this.classes).list; }

  // alone shows one class and fades the others; null shows all.
  alone(key) {
    this.dim = key;
    weigh(this.bundles, this.lines, this.mode, this.load, key);
    this.picture = this.texts = null;
    this.stale();
  }

  // way shows the way of a packet over nodes, by GUID, and unfolds the boxes that it leads through.
  way(guids) {
    this.path = guids ? guids.map(g => this.index.get(g)).filter(i => i !== undefined) : null;
    const groups = (this.path || []).map(i => this.map.nodes.group[i]).filter(g => this.at.folded[g]);
    if (groups.length) this.unfold(groups);
    this.stale();
  }

  // frameWay brings the way of a packet into view.
  frameWay() {
    if (!this.path || !this.path.length) return;
    const xs = this.path.map(i => this.at.x[i]), ys = this.path.map(i => this.at.y[i]);
    const left = Math.min(...xs), top = Math.min(...ys);
    this.frame(left - 3, top - 2, Math.max(...xs) - left + 6, Math.max(...ys) - top + 4);
  }

  // drawn is what the map shows of each node, for tests: its GUID, class and colour.
  drawn() {
    if (!this.map) return null;
    const {of, list} = this.classes;
    return {mode: this.mode, frames: this.frames, folded: this.map.groups.filter((_, g) => this.at.folded[g]).map(g => g.name), cables: this.lines && [...this.lines.of].map(i => this.lines.list[i].key), nodes: this.map.nodes.guid.map((guid, i) => ({guid, key: list[of[i]].key, colour: list[of[i]].colour, x: this.at.x[i], y: this.at.y[i]}))};
  }

  resized() {
    const {width, height} = this.element.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    if (!width || !height) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.size = {width, height, ratio};
    if (this.map && this.fitted) this.whole();
    this.draw();
  }

  // stale has it drawn with the next frame.
  stale() {
    if (this.waiting || this.closed) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); });
  }

  draw() {
    if (!this.map || !this.size || this.closed) return;
    this.frames++;
    paint(this);
  }

  whole() {
    if (!this.size) return;
    const {width, height} = this.size;
    const scale = Math.min(width / (this.at.width + 4), height / (this.at.height + 4), 40);
    this.view = {scale, x: this.at.width / 2 - width / scale / 2, y: this.at.height / 2 - height / scale / 2};
    this.least = scale / 2;
    this.fitted = true;
    this.stale();
    this.onMove();
  }

  // where is what is seen, as a text: the device nearest to the middle, how far the middle is from
  // it in units, and pixels a unit. In a window of another shape it is still about that
  // device. It is empty for the whole.
  where() {
    if (this.fitted || !this.size || !this.map.nodes.guid.length) return '';
    const nearest = this.first(), {x, y, scale} = this.view;
    const i = nearest < this.at.nodes ? nearest : this.map.nodes.group.indexOf(nearest - this.at.nodes); // of a box, a device in it
    const off = [x + this.size.width / scale / 2 - this.at.x[i], y + this.size.height / scale / 2 - this.at.y[i]];
    return [this.map.nodes.guid[i], ...off.map(n => n.toFixed(2)), scale.toPrecision(4)].join(',');
  }

  // look shows what where said; of what is no such text, nothing.
  look(text) {
    const [guid, ...numbers] = text.split(',');
    const i = this.index.get(guid), [dx, dy, scale] = numbers.map(Number);
    if (i === undefined || !(scale > 0) || !Number.isFinite(dx + dy)) return;
    if (!this.size) this.resized();
    const at = Math.min(zoomMost, Math.max(this.least || 0.1, scale));
    this.frame(this.at.x[i] + dx, this.at.y[i] + dy, 0, 0, at);
  }

  // frame shows a part: units; near, if there is one, is how many pixels a unit has.
  frame(x, y, width, height, near = 0) {
    if (!this.size) this.resized();
    if (!this.size) return;
    const scale = near || Math.min(zoomMost, this.size.width / width, this.size.height / height);
    this.view = {scale, x: x + width / 2 - this.size.width / scale / 2, y: y + height / 2 - this.size.height / scale / 2};
    this.fitted = false;
    this.stale();
    this.onMove();
  }

  zoom(by, px = this.size.width / 2, py = this.size.height / 2) {
    const v = this.view, scale = Math.min(zoomMost, Math.max(this.least || 0.1, v.scale * by));
    v.x += px / v.scale - px / scale;
    v.y += py / v.scale - py / scale;
    v.scale = scale;
    this.fitted = false;
    this.stale();
    this.onMove();
  }

  pan(dx, dy) {
    this.view.x -= dx / this.view.scale;
    this.view.y -= dy / this.view.scale;
    this.fitted = false;
    this.stale();
    this.onMove();
  }

  // choose selects a node by its index, and unfolds its box; near brings it into view. A box that is
  // folded is unfolded.
  choose(node, near = true) {
    const group = node < this.at.nodes ? this.map.nodes.group[node] : node - this.at.nodes;
    if (node >= this.at.nodes) {
      this.toggle(group);
      this.onSelect('box', group);
      return;
    }
    if (node >= 0 && this.at.folded[group]) {
      this.unfold([group]);
      near = true;
    }
    this.chosen = this.cursor = node;
    if (node >= 0 && near) {
      const wide = Math.max(24, this.size ? this.size.width / Math.max(this.view.scale, 14) : 24);
      this.frame(this.at.x[node] - wide / 2, this.at.y[node] - wide / 4, wide, wide / 2);
    }
    this.stale();
    this.onSelect(node >= 0 ? 'node' : '', node);
  }

  // hit is the node, or the box that is folded, at a place of the canvas, or -1.
  hit(px, py) {
    const x = px / this.view.scale + this.view.x, y = py / this.view.scale + this.view.y;
    const reach = Math.max(0.5, 6 / this.view.scale);
    let best = -1, least = Infinity;
    for (const i of this.at.shown) {
      const dx = Math.max(0, Math.abs(this.at.x[i] - x) - this.at.w[i] / 2 + 0.5), dy = Math.max(0, Math.abs(this.at.y[i] - y) - this.at.h[i] / 2 + 0.5);
      if (dx > reach || dy > reach) continue;
      const d = dx * dx + dy * dy;
      if (d < least) { least = d; best = i; }
    }
    return best;
  }

  // next is the nearest node in a direction: the one that costs least, where going aside
  // costs twice.
  next(dx, dy) {
    if (this.cursor < 0) return this.chosen >= 0 && !this.at.folded[this.map.nodes.group[this.chosen]] ? this.chosen : this.first();
    const x0 = this.at.x[this.cursor], y0 = this.at.y[this.cursor];
    let best = this.cursor, least = Infinity;
    for (const i of this.at.shown) {
      const x = this.at.x[i] - x0, y = this.at.y[i] - y0;
      const along = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
      if (along <= 0.01 || aside > along * 2) continue;
      const d = along + 2 * aside;
      if (d < least) { least = d; best = i; }
    }
    return best;
  }

  // first is the device, or the box that is folded, nearest to the middle of the view.
  first() {
    const x = this.view.x + this.size.width / this.view.scale / 2, y = this.view.y + this.size.height / this.view.scale / 2;
    let best = -1, least = Infinity;
    for (const i of this.at.shown) {
      const d = (this.at.x[i] - x) ** 2 + (this.at.y[i] - y) ** 2;
      if (d < least) { least = d; best = i; }
    }
    return best;
  }

  move(dx, dy) {
    this.cursor = this.next(dx, dy);
    if (this.cursor < 0) return;
    const v = this.view, px = (this.at.x[this.cursor] - v.x) * v.scale, py = (this.at.y[this.cursor] - v.y) * v.scale;
    const edge = 40;
    if (px < edge || px > this.size.width - edge) this.pan(this.size.width / 2 - px, 0);
    if (py < edge || py > this.size.height - edge) this.pan(0, this.size.height / 2 - py);
    const {nodes} = this.map, {of, list} = this.classes, group = this.cursor - this.at.nodes;
    if (group >= 0) this.say(`${this.map.groups[group].name}, folded: ${told(this.inside[group])}`);
    else this.say(`${nodes.name[this.cursor]}, ${['host', 'switch', 'router'][nodes.type[this.cursor]]}, ${list[of[this.cursor]].name}, ${this.map.states[nodes.state[this.cursor]]}`);
    this.stale();
  }

  listen() {
    const c = this.canvas;
    let from = null, moved = 0;
    c.addEventListener('pointerdown', e => {
      if (e.button > 0) return;
      from = {x: e.clientX, y: e.clientY};
      moved = 0;
      c.setPointerCapture(e.pointerId);
    });
    c.addEventListener('pointermove', e => {
      if (from) {
        moved += Math.abs(e.clientX - from.x) + Math.abs(e.clientY - from.y);
        if (moved > 4) this.pan(e.clientX - from.x, e.clientY - from.y);
        from = {x: e.clientX, y: e.clientY};
      } else if (this.map) {
        const i = this.hit(e.offsetX, e.offsetY);
        if (i !== this.over) {
          this.over = i;
          const group = i - this.at.nodes;
          c.title = i < 0 ? '' : group >= 0 ? `${this.map.groups[group].name}: ${told(this.inside[group])}` : `${this.map.nodes.name[i]} (${this.classes.list[this.classes.of[i]].name})`;
          c.classList.toggle('over', i >= 0);
        }
      }
    });
    c.addEventListener('pointerup', e => {
      if (from && moved <= 4 && this.map) this.pressed(e.offsetX, e.offsetY);
      from = null;
    });
    c.addEventListener('pointercancel', () => { from = null; });
    c.addEventListener('wheel', e => {
      e.preventDefault();
      this.zoom(Math.exp(-e.deltaY * (e.deltaMode === 1 ? 0.05 : 0.0015)), e.offsetX, e.offsetY);
    }, {passive: false});
    c.addEventListener('keydown', e => this.key(e));
    c.addEventListener('blur', () => this.stale());
    c.addEventListener('focus', () => this.stale());
  }

  // pressed: far off a press goes to a box, near it chooses a device; a box that is folded is unfolded.
  pressed(px, py) {
    const hit = this.hit(px, py);
    if (hit < this.at.nodes && this.view.scale < 5) {
      const x = px / this.view.scale + this.view.x, y = py / this.view.scale + this.view.y;
      const box = this.at.boxes.find(b => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height);
      if (box && this.at.boxes.length > 1) {
        this.frame(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
        this.onSelect('box', box.group);
        return;
      }
    }
    this.choose(hit, false);
  }

  // toggleAt folds the box of a node, or unfolds a box.
  toggleAt(i) {
    const group = i < this.at.nodes ? this.map.nodes.group[i] : i - this.at.nodes;
    this.toggle(group);
  }

  key(e) {
    if (!this.map || e.ctrlKey || e.altKey || e.metaKey) return;
    const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[e.key];
    if (step && e.shiftKey) this.pan(-step[0] * 80, -step[1] * 80);
    else if (step) this.move(...step);
    else if (e.key === '+' || e.key === '=') this.zoom(zoomStep);
    else if (e.key === '-') this.zoom(1 / zoomStep);
    else if (e.key === '0') this.whole();
    else if (e.key === 'Enter' || e.key === ' ') this.choose(this.cursor < 0 ? this.first() : this.cursor, true);
    else if (e.key === 'Escape') this.choose(-1, false);
    else if (e.key === 'f' && this.map.groups.length > 1) this.toggleAt(this.cursor < 0 ? this.first() : this.cursor);
    else return;
    e.preventDefault();
  }
}

// mostPorts is the highest port of each node that has a cable.
function mostPorts(map) {
  const {a, b, a_port: ap, b_port: bp} = map.links;
  const most = new Uint8Array(map.nodes.guid.length);
  for (let l = 0; l < a.length; l++) {
    most[a[l]] = Math.max(most[a[l]], ap[l]);
    most[b[l]] = Math.max(most[b[l]], bp[l]);
  }
  return most;
}

// legend shows what the colours of a map say; a class that is pressed is shown alone, and chosen
// called with its key, or null.
/** @param {HTMLElement} place @param {FabricMap} fabricMap @param {(key: string | null) => void} [chosen] */
export function legend(place, fabricMap, chosen = () => {}) {
  const draw = () => {
    if (!fabricMap.classes) return;
    const list = [...fabricMap.legends()].sort((a, b) => (a.order ?? 0) - (b.order ?? 0) || compareNames(a.name, b.name));
    replace(place, list.map(c => {
      const swatch = h('span', {class: c.hollow ? 'swatch hollow' : 'swatch', 'aria-hidden': 'true'}, c.code);
      swatch.style.background = c.hollow ? 'none' : c.colour;
      swatch.style.borderColor = c.colour;
      const b = h('button', {type: 'button', class: 'legend', 'aria-pressed': fabricMap.dim === c.key ? 'true' : 'false', 'data-class': c.key, onclick: () => {
        fabricMap.alone(fabricMap.dim === c.key ? null : c.key);
        chosen(fabricMap.dim);
        draw();
        /** @type {HTMLElement | null} */ (place.querySelector(`[data-class="${CSS.escape(c.key)}"]`))?.focus();
      }}, swatch, `${c.name} (${c.count.toLocaleString('en')})`);
      return b;
    }));
  };
  return draw;
}

function compareNames(a, b) { return a.localeCompare(b, 'en', {numeric: true}); }
