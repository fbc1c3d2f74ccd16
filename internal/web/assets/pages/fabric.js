// The page Fabric: the map, what its colours say, a search, and what is known of the device
// that was chosen.

import {count, field, h, mark, notify, remember, replace, settle, table, time} from '../dom.js';
import * as api from '../api.js';
import {FabricMap, legend} from '../map/map.js';
import {modes, onCables} from '../map/colours.js';
import {pictureSaver} from '../save.js';
import {devicePanel} from './device.js';

const rereadAfter = 400; // ms from an event to the next read of the map
const viewAfter = 500; // ms from a move of the view to the address
const rereadEvery = 10000; // ms between two reads in any case
const foundMost = 30; // devices that a search lists
const rowsMost = 200; // devices that a table lists

// events after which no cable and no device looks different
const unrelated = new Set(['audit-head', 'progress', 'found', 'multicast']);

export default {
  name: 'fabric', title: 'Fabric',
  async render(main, params, app) {
    const page = new FabricPage(main, params, app);
    await page.begin();
    return Object.assign(() => page.end(), {take: next => page.address(next)});
  },
};

class FabricPage {
  constructor(main, params, app) {
    this.main = main;
    this.params = params;
    this.app = app;
    this.etag = '';
    this.spoken = h('p', {class: 'hidden', 'aria-live': 'polite'});
    this.map = new FabricMap((kind, index) => this.chosen(kind, index), text => replace(this.spoken, text));
    this.legend = h('div', {class: 'legends', role: 'group', 'aria-label': 'Colours: press one to show it alone'});
    this.drawLegend = legend(this.legend, this.map, key => this.keep({alone: key || ''}, true));
    const moved = settle(() => this.keep({view: this.map.where()}), viewAfter);
    this.map.onMove = () => { if (!this.taking) moved(); };
    this.map.onFold = () => this.folded();
    this.panel = h('section', {class: 'panel side', 'aria-label': 'What was chosen'});
    this.summary = h('p', {class: 'summary'});
    this.cables = h('div');
    this.mode = h('select', {onchange: () => { this.keep({colour: this.mode.value}, true); this.recolour(this.mode.value); }}, modes.filter(([m]) => app.provider || !onCables.has(m)).map(([m, t]) => h('option', {value: m}, t)));
    this.search = h('input', {type: 'search', autocomplete: 'off', placeholder: 'Name, GUID or LID', oninput: () => { this.keep({text: this.search.value}); this.find(); }, onkeydown: e => this.searchKey(e)});
    this.found = h('ul', {class: 'found', id: 'found', 'aria-label': 'Devices found'});
    window.ibwarden.drawn = () => this.map.drawn();
    window.ibwarden.map = this.map;
  }

  async begin() {
    this.folding = h('div', {class: 'row', role: 'group', 'aria-label': 'Boxes', hidden: true}, [['Unfold all', true], ['Fold all', false]].map(([t, open]) => h('button', {type: 'button', onclick: () => this.map.unfoldAll(open)}, t)));
    const zooms = [['+', 'Nearer', () => this.map.zoom(1.3)], ['−', 'Farther', () => this.map.zoom(1 / 1.3)], ['⤢', 'The whole', () => this.map.whole()]];
    replace(this.main,
      h('div', {class: 'row maptools'}, field('Search', this.search), field('Colour by', this.mode),
        h('div', {class: 'zooms', role: 'group', 'aria-label': 'Zoom'}, zooms.map(([t, label, f]) => h('button', {type: 'button', 'aria-label': label, title: label, onclick: f}, t))), this.folding),
      this.found, this.spoken, this.summary,
      h('div', {class: 'mapside'}, h('div', {}, this.map.element, pictureSaver('Map of the fabric', this.map.canvas), this.legend), this.panel),
      this.cables);
    this.nothing();
    await this.read();
    const soon = settle(() => this.read().catch(e => notify(e.message, 'bad')), rereadAfter);
    this.app.onEvent(e => { if (!unrelated.has(e.name)) soon(); });
    this.app.every(rereadEvery, () => this.read());
    await this.address(this.params);
  }

  // keep writes into the address what was chosen.
  keep(changes, step) { if (!this.taking) remember('fabric', changes, step); }

  // folded keeps what is unfolded; what is chosen by the same press is no step of its own for Back.
  folded() {
    this.folding.hidden = !this.map.folds.matter(this.data);
    this.keep({open: this.map.folds.text(this.data)}, true);
    this.stepped = true;
    queueMicrotask(() => { this.stepped = false; });
  }

  // address shows what the address says: {open, node, port, box, view, text, colour, alone}.
  async address(params) {
    this.taking = true;
    this.map.fold(params.open || '');
    const box = this.data.groups.findIndex(g => g.name === params.box);
    if (!params.view && !params.node) this.map.whole();
    if (params.node) this.byGUID(params.node, params.port === undefined ? undefined : Number(params.port));
    else this.map.choose(-1, false);
    if (box >= 0 && !params.node) this.box(box);
    if (params.view) this.map.look(params.view);
    this.search.value = params.text || '';
    this.find();
    this.taking = false;
    const mode = [...this.mode.options].find(o => o.value === params.colour) || this.mode.options[0];
    this.mode.value = mode.value;
    await this.recolour(mode.value);
    this.map.alone(this.map.legends().some(c => c.key === params.alone) ? params.alone : null);
    this.drawLegend();
  }

  end() { this.map.close(); }

  // read reads the map, unless it is as it was.
  async read() {
    const map = await api.fresh('/map', {}, this.etag);
    if (map && this.main.isConnected) {
      this.etag = map.etag;
      this.data = map;
      this.map.show(map);
      this.drawLegend();
      this.folding.hidden = !this.map.folds.matter(map);
      this.summarise(map);
      if (this.app.provider) this.readCables();
      if (this.refresh) this.refresh();
    }
    if (onCables.has(this.mode.value)) await this.readLoad();
  }

  summarise(map) {
    const {type, state} = map.nodes, {state: links} = map.links;
    const kinds = [0, 0, 0];
    for (const t of type) kinds[t]++;
    const worse = new Map();
    for (const s of state) if (map.states[s] !== 'active') worse.set(map.states[s], (worse.get(map.states[s]) ?? 0) + 1);
    const cables = new Map();
    for (const s of links) if (map.link_states[s] !== 'active') cables.set(map.link_states[s], (cables.get(map.link_states[s]) ?? 0) + 1);
    replace(this.summary, `${count(kinds[1], 'switch', 'switches')}, ${count(kinds[0], 'host')}, ${count(links.length, 'cable')}; read `, time(map.read_at), '. ',
      [...worse].map(([name, n]) => [mark(name === 'unread' ? 'unknown' : 'warn', `${count(n, 'device')} ${name}`), ' ']),
      [...cables].map(([name, n]) => [mark(name === 'inactive' ? 'warn' : 'bad', `${count(n, 'cable')} ${name}`), ' ']));
  }

  async readCables() {
    const answer = await api.get('/cables', {limit: rowsMost}, {background: true}).catch(e => ({items: [], fault: e.message}));
    if (answer.fault || answer.items.length === 0) {
      replace(this.cables, answer.fault ? h('p', {class: 'hint'}, answer.fault) : null);
      return;
    }
    replace(this.cables, table('Cables that are not as the list of cables says', [
      {title: 'At', cell: c => h('button', {type: 'button', class: 'plain', onclick: () => this.byGUID(c.node, c.port)}, `${c.name} port ${c.port}`)},
      {title: 'What', cell: c => mark('bad', c.kind)}, {title: 'In words', cell: c => c.text},
    ], answer.items));
  }

  async recolour(mode) {
    if (onCables.has(mode)) await this.readLoad();
    this.map.colour(mode);
    this.drawLegend();
  }

  // readLoad reads what the cables of the map carry; of another map, that the next reading brings, it
  // shows nothing.
  async readLoad() {
    try {
      const load = await api.item('/map/load', {}, {background: true});
      this.map.colour(this.mode.value, load.map === this.etag ? load : null);
      this.drawLegend();
    } catch (e) {
      notify(e.message, 'bad');
    }
  }

  find() {
    const text = this.search.value.trim().toLowerCase();
    if (!text || !this.data) {
      replace(this.found);
      return [];
    }
    const {name, guid, lid = []} = this.data.nodes, hits = [];
    for (let i = 0; i < name.length && hits.length < foundMost; i++) {
      if (name[i].toLowerCase().includes(text) || guid[i].includes(text) || String(lid[i] ?? '') === text) hits.push(i);
    }
    replace(this.found, hits.length ? hits.map(i => h('li', {}, h('button', {type: 'button', onclick: () => this.take(i)}, name[i], h('span', {class: 'hint'}, ` ${guid[i]}`)))) : h('li', {class: 'empty'}, 'Nothing is called so.'));
    return hits;
  }

  searchKey(e) {
    if (e.key === 'Enter') {
      const hits = this.find();
      if (hits.length) this.take(hits[0]);
    } else if (e.key === 'Escape') {
      this.search.value = '';
      this.keep({text: ''});
      this.find();
    } else if (e.key === 'ArrowDown') {
      const first = this.found.querySelector('button');
      if (first) { e.preventDefault(); first.focus(); }
    }
  }

  take(i) {
    replace(this.found);
    this.search.value = this.data.nodes.name[i];
    this.keep({text: ''});
    this.map.choose(i);
  }

  byGUID(guid, port) {
    const i = this.data ? this.data.nodes.guid.indexOf(guid) : -1;
    if (i < 0) {
      notify(`There is no device ${guid} on the map.`, 'warn');
      return;
    }
    this.port = port;
    this.map.choose(i);
    this.panel.scrollIntoView({block: 'nearest'});
  }

  // isDrained reports whether a switch carries no packets of others, as the map has it.
  isDrained(guid) {
    const i = this.data.nodes.guid.indexOf(guid);
    return i >= 0 && this.data.states[this.data.nodes.state[i]] === 'drained';
  }

  nothing() {
    this.refresh = null;
    replace(this.panel, h('h2', {}, 'Nothing is chosen'), h('p', {class: 'hint'}, 'Press a device of the map, or search for one. With the keyboard: arrow keys go from device to device, Enter shows one or unfolds a box, + and − zoom, 0 shows the whole.'));
  }

  chosen(kind, index) {
    const port = this.port;
    this.port = undefined;
    this.keep({node: kind === 'node' ? this.data.nodes.guid[index] : '', port, box: kind === 'box' ? this.data.groups[index].name : ''}, !this.stepped);
    if (kind === '') this.nothing();
    else if (kind === 'box') this.box(index);
    else {
      this.refresh = devicePanel(this.panel, this.data.nodes.guid[index], port, this);
    }
  }

  // box lists the devices of a box.
  box(group) {
    this.refresh = null;
    const {nodes, owners, states} = this.data;
    const list = [...nodes.guid.keys()].filter(i => nodes.group[i] === group).sort((a, b) => nodes.level[b] - nodes.level[a] || nodes.name[a].localeCompare(nodes.name[b], 'en', {numeric: true}));
    replace(this.panel, h('h2', {}, this.data.groups[group].name), h('p', {}, count(list.length, 'device'), ' ', this.data.groups.length > 1 ? h('button', {type: 'button', onclick: () => { this.map.toggle(group); this.box(group); }}, this.map.at.folded[group] ? 'Unfold' : 'Fold') : null),
      table('Devices', [
        {title: 'Name', cell: i => h('button', {type: 'button', class: 'plain', onclick: () => this.map.choose(i)}, nodes.name[i]), sort: i => nodes.name[i]},
        {title: 'Owner', cell: i => (nodes.type[i] === 1 ? 'switch' : owners[nodes.owner[i]] ?? (nodes.owner[i] === -2 ? 'several' : 'nobody'))},
        {title: 'State', cell: i => states[nodes.state[i]], sort: i => states[nodes.state[i]]},
      ], list.slice(0, rowsMost)), list.length > rowsMost ? h('p', {class: 'hint'}, `The first ${rowsMost} are listed.`) : null);
  }
}

