// How the fabric was: a slider over the moments that the service keeps, and pictures of one of them, or
// of two side by side. The address has them: at and with. Nothing here changes anything.
//
// For tests: [data-past] is the whole, its value the begin of the period; [data-moment] is what is shown of one;
// [data-difference] what differs.

import {button, count, facts, field, h, link, mark, notify, params as addressed, remember, replace, settle, stamp, svg, table, toHash, verdictMark} from '../dom.js';
import * as api from '../api.js';
import {legend, FabricMap} from '../map/map.js';
import {portSayer, revisionLink, section, texts} from './controls.js';
import {matrixOf} from './matrixview.js';

const readAfter = 150; // ms from a move of the slider to the next read
const playEvery = 1000; // ms between two moments that are played

// lookBack leads from a page of now to the last moment.
export function lookBack(page, app) {
  return button('Look back …', async () => {
    const {at} = await api.item('/past');
    if (!at.length) throw new Error('Nothing is kept yet: the first moment is there within seconds of the first verdict.');
    app.go(page.name, {at: iso(at.at(-1))});
  }, {class: 'lookback'});
}

const iso = seconds => new Date(seconds * 1000).toISOString().replace('.000', '');

// past shows a page (overview, fabric or tenants) at the moments of the address.
export async function past(main, params, app, page) {
  const view = new Past(main, app, page);
  view.kept = await api.item('/past');
  view.say = await portSayer().catch(() => w => w); // GUIDs do without names
  view.frame();
  await view.address(params);
  return Object.assign(() => view.end(), {take: next => view.address(next)});
}

class Past {
  constructor(main, app, page) {
    this.main = main;
    this.app = app;
    this.page = page;
    this.kept = null; // the moments that there are
    this.say = w => w; // names ports
    /** @type {{map: FabricMap, box: HTMLElement, legend: () => void}[]} */
    this.maps = [];
    /** @type {AbortController | null} */
    this.read = null;
    /** @type {any} */
    this.playing = 0;
    this.soon = settle(() => this.show().catch(e => notify(e.message, 'bad')), readAfter);
  }

  end() {
    clearInterval(this.playing);
    if (this.read) this.read.abort();
    for (const m of this.maps) m.map.close();
  }

  slider(label, name) {
    const input = h('input', {type: 'range', min: '0', max: String(Math.max(0, this.kept.at.length - 1)), step: '1', oninput: () => this.move(name, Number(input.value))});
    return field(label, input);
  }

  frame() {
    this.said = h('p', {class: 'aged', role: 'status'});
    this.one = this.slider('Moment', 'at');
    this.two = this.slider('Beside it', 'with');
    this.beside = button('Side by side', () => {
      const at = Number(this.one.control.value);
      remember(this.page.name, {with: this.with ? '' : iso(this.kept.at[Math.max(0, at - 1)])}, true);
      return this.address(addressed());
    });
    this.play = button('Play', () => this.toggle());
    this.body = h('div');
    const step = (text, by) => button(text, () => this.move('at', Number(this.one.control.value) + by));
    replace(this.main, h('section', {class: 'panel past', 'aria-label': 'Time'}, this.said, strip(this.kept), this.one, this.two,
      h('div', {class: 'actions'}, button('Now', () => this.app.go(this.page.name), {class: 'primary'}), step('Earlier', -1), step('Later', 1), this.play, this.beside),
      h('p', {class: 'hint'}, 'Arrow keys on the slider go from moment to moment. ', older(this.kept))), this.body);
  }

  toggle() {
    if (this.playing) clearInterval(this.playing);
    this.playing = this.playing ? 0 : setInterval(() => {
      const next = Number(this.one.control.value) + 1;
      if (next >= this.kept.at.length) this.toggle();
      else this.move('at', next);
    }, playEvery);
    replace(this.play, this.playing ? 'Stop' : 'Play');
  }

  // move goes to a moment by its place in the list.
  move(name, to) {
    const at = this.kept.at[Math.max(0, Math.min(this.kept.at.length - 1, to))];
    if (at === undefined) return;
    remember(this.page.name, {[name]: iso(at)});
    this.set(addressed());
    this.soon();
  }

  async address(params) {
    this.set(params);
    await this.show();
  }

  // set takes the moments of the address, and moves the sliders there.
  set(params) {
    this.at = params.at;
    this.with = params.with || '';
    for (const [slider, text] of [[this.one, this.at], [this.two, this.with]]) {
      const t = Date.parse(text) / 1000, i = this.kept.at.findLastIndex(x => x <= t);
      slider.control.value = String(Math.max(0, i));
      slider.control.setAttribute('aria-valuetext', i < 0 ? 'before all that is kept' : `${stamp(new Date(this.kept.at[i] * 1000))}, ${this.kept.verdicts[this.kept.verdict[i]]}`);
    }
    this.two.hidden = !this.with;
    replace(this.beside, this.with ? 'One alone' : 'Side by side');
  }

  async show() {
    if (this.read) this.read.abort();
    const read = this.read = new AbortController();
    const old = [this.at, this.with].find(t => t && !(Date.parse(t) / 1000 >= this.kept.at[0]));
    if (old) {
      const from = this.kept.at.length ? `the oldest moment is ${stamp(new Date(this.kept.at[0] * 1000))}` : 'there is no moment yet';
      replace(this.said, mark('warn', 'This is the past:'), ` nothing is kept of ${Number.isNaN(Date.parse(old)) ? old : stamp(new Date(old))}: ${from}. `, older(this.kept, old));
      replace(this.body);
      return;
    }
    let answer;
    try {
      answer = await api.item('/past/moment', {at: this.at, with: this.with}, {signal: read.signal});
    } catch (e) {
      if (e.name === 'AbortError') return;
      throw e;
    }
    this.main.dataset.past = answer.moment.at;
    replace(this.said, mark('warn', 'This is the past:'), ` ${told(this.at, answer.moment)}${answer.with ? `, and ${told(this.with, answer.with)}` : ''}. Nothing can be changed here.`);
    await this.draw(answer, read.signal);
  }

  async draw(answer, signal) {
    const moments = [answer.moment, answer.with].filter(Boolean).sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
    const drawn = this.page.name === 'fabric' ? await this.mapsOf(moments) : moments.map(m => (this.page.name === 'tenants' ? matrixAt(m) : busiest(m)));
    if (signal.aborted) return;
    replace(this.body, answer.difference ? this.difference(answer.difference, moments) : null,
      h('div', {class: 'columns'}, moments.map((m, i) => {
        const box = section(stamp(new Date(m.at)), 'moment', state(m), drawn[i]);
        box.dataset.moment = m.verdict;
        return box;
      })));
  }

  // mapsOf are the maps of moments: the devices and cables of now, with what cables carried then.
  async mapsOf(moments) {
    if (!this.map || moments.some(m => m.map !== this.map.etag)) this.map = await api.get('/map');
    while (this.maps.length < moments.length) {
      const said = h('p', {class: 'hint', 'aria-live': 'polite'});
      const map = new FabricMap((kind, i) => replace(said, kind === 'node' ? this.map.nodes.name[i] : ''), text => replace(said, text));
      const names = h('div', {class: 'legends', role: 'group', 'aria-label': 'Colours: press one to show it alone'});
      this.maps.push({map, box: h('div', {}, map.element, names, said, h('p', {class: 'hint'})), legend: legend(names, map)});
    }
    window.ibwarden.drawn = () => this.maps[0].map.drawn();
    return moments.map((m, i) => {
      const {map, box, legend: named} = this.maps[i];
      if (map.map !== this.map) map.show(this.map);
      map.colour('load', m.map === this.map.etag ? m : null);
      named();
      replace(box.lastChild, 'Devices and cables are those of now.', m.elsewhere ? ` ${count(m.elsewhere, 'cable')} of then ${m.elsewhere === 1 ? 'is' : 'are'} not on this map.` : '');
      return box;
    });
  }

  difference(d, moments) {
    const [a, b] = moments;
    const changed = (what, x, y) => x === y ? null : [what, `${x.toLocaleString('en')}, then ${y.toLocaleString('en')}`];
    const members = (list, total, kind, word) => (total ? [h('h3', {}, `${count(total, 'membership')} ${word}`), texts(list.map(m => [mark(kind, m.partition || m.pkey), ' ', this.say(m.port)])), total > list.length ? h('p', {class: 'hint'}, `The first ${list.length} are listed.`) : null] : null);
    const box = section('What differs', 'difference',
      facts([['Verdict', a.verdict === b.verdict ? null : [verdictMark(a.verdict), ' then ', verdictMark(b.verdict)]], changed('Alarms', a.alarms, b.alarms), changed('Violations', a.violations, b.violations), changed('Revision', a.revision, b.revision)].filter(Boolean)),
      d.unknown ? h('p', {}, mark('unknown', `Memberships are not compared: ${d.unknown}`)) : null,
      members(d.gained, d.gained_total, 'good', 'gained'), members(d.lost, d.lost_total, 'bad', 'lost'),
      d.unknown || d.gained_total || d.lost_total ? null : h('p', {}, 'No membership was gained or lost.'),
      d.file ? h('p', {}, 'The policy file is another.') : null,
      a.revision < b.revision ? h('p', {}, link(toHash('history', {from: a.revision, to: b.revision}), 'All that was changed between')) : null,
      cables('Cables whose load differs most', d.cables, [stamp(new Date(a.at)), stamp(new Date(b.at))]));
    box.dataset.difference = `${d.gained_total} ${d.lost_total}`;
    return box;
  }
}

// told says of which period a moment is.
function told(asked, m) {
  const [from, until] = [new Date(m.at), new Date(m.until)];
  return `${stamp(from)} to ${stamp(until).slice(11)}${Date.parse(asked) >= until.getTime() ? `, the last before ${stamp(new Date(asked))}: of that nothing is kept` : ''}`;
}

// state is the verdict of a moment, and what goes with it.
function state(m) {
  return [h('p', {class: 'verdict', 'data-verdict': m.verdict}, verdictMark(m.verdict)),
    h('p', {}, `The worst of the period, under ${m.revision ? '' : 'the first policy'}`, m.revision ? revisionLink(m.revision) : '', `. It rests on ${count(m.pairs, 'pair')} of ${count(m.partitions, 'partition')} and ${count(m.end_ports, 'end port')}.`),
    h('p', {}, m.violations ? [mark('bad', count(m.violations, 'violation')), ' '] : null, m.alarms ? mark('warn', count(m.alarms, 'alarm')) : 'No alarms.')];
}

function busiest(m) { return cables(`What cables carried most, ${stamp(new Date(m.at))}`, m.busiest); }

// cables is a table of what cables carried, at one moment or at two.
function cables(title, list, times = []) {
  const percent = n => (n === undefined ? 'not kept' : n === 0 ? '0 %' : `up to ${n} %`);
  return table(title, [{title: 'One end', cell: c => c.a}, {title: 'Other end', cell: c => c.b},
    {title: times[0] || 'Load', cell: c => percent(c.percent), number: true}, ...(times[1] ? [{title: times[1], cell: c => percent(c.with), number: true}] : [])], list, {empty: 'None.'});
}

function matrixAt(m) { return m.matrix ? matrixOf(m.matrix) : h('p', {class: 'empty'}, 'Who could talk with whom is not kept of then: it was over before it was worked out.'); }

const stripWidth = 1000;

// strip shows, above the slider, when tenants were not kept apart, or it was not known.
function strip(kept) {
  const holds = kept.verdicts.map(v => v.startsWith('isolated')), n = kept.at.length;
  const bad = kept.verdict.map((v, i) => [v, i]).filter(([v]) => !holds[v]);
  if (!n) return null;
  const wide = Math.max(2, stripWidth / n);
  return svg('svg', {viewBox: `0 0 ${stripWidth} 8`, preserveAspectRatio: 'none', class: 'strip', role: 'img', 'aria-label': bad.length ? `In ${bad.length} of ${count(n, 'moment')} tenants were not kept apart, or it was not known` : `In all of ${count(n, 'moment')} tenants were kept apart`},
    bad.map(([v, i]) => svg('rect', {x: i * stripWidth / n, y: 0, width: wide, height: 8, class: kept.verdicts[v] === 'violated' ? 'bad' : 'unknown'})));
}

// older says where what is older than all that is kept can be found; at is which time.
function older(kept, at) {
  if (kept.prometheus) {
    const to = new URL(`${kept.prometheus.replace(/\/$/, '')}/graph`);
    for (const [k, v] of [['g0.expr', 'ibwarden_verdict'], ['g0.tab', '0'], ['g0.range_input', '1h'], ['g0.end_input', Date.parse(at) ? new Date(at).toISOString().slice(0, 19).replace('T', ' ') : '']]) if (v) to.searchParams.set(k, v);
    return h('a', {href: to.href, rel: 'noopener noreferrer'}, 'Older values are in Prometheus');
  }
  return kept.metrics_at ? `Older values are in the Prometheus that scrapes ${kept.metrics_at}.` : 'Older values are not kept: ibwarden run --metrics serves them to Prometheus.';
}
