// Controls, marks and words that several pages share.

import {button, field, h, link, mark, replace, span, time, toHash, verdictMark} from '../dom.js';
import * as api from '../api.js';
import {index, sayer} from './ports.js';

// choice is a labelled list of values to choose from: options are [value, text]. change gets
// the value.
export function choice(label, options, value, change, props = {}) {
  const control = h('select', {...props, onchange: () => change(control.value)}, options.map(([v, text]) => h('option', {value: v}, text)));
  control.value = value;
  if (control.selectedIndex < 0) control.selectedIndex = 0;
  return field(label, control);
}

// search is a labelled field whose text is taken as it is typed.
export function search(label, value, change, hint, props = {}) {
  const control = h('input', {type: 'search', value, spellcheck: 'false', autocomplete: 'off', maxlength: '200', oninput: () => change(control.value), ...props});
  return field(label, control, hint);
}

const outcomes = {
  pending: ['unknown', 'pending: not yet on the fabric'],
  proved: ['good', 'proved'],
  failed: ['bad', 'failed: written, and not proved'],
  refused: ['bad', 'refused: nothing was written'],
};

// outcomeMark shows what became of a revision on the fabric.
export function outcomeMark(outcome) {
  if (!outcome) return mark('unknown', 'not known');
  const [kind, text] = outcomes[outcome.state] || ['unknown', outcome.state];
  return h('span', {'data-outcome': outcome.state}, mark(kind, text),
    outcome.verdict && outcome.verdict !== 'unknown' ? [' ', verdictMark(outcome.verdict)] : null);
}

// section is a part of a page with a heading; body is where its content goes.
export function section(title, name, ...children) {
  const body = h('div', {}, children);
  const box = h('section', {class: 'panel', 'data-part': name}, h('h2', {}, title), body);
  box.body = body;
  return box;
}

// texts is a list of sentences; where there are many, only the first ones at first.
export function texts(list, most = 8) {
  const shown = h('ul', {class: 'texts'}, list.slice(0, most).map(t => h('li', {}, t)));
  if (list.length <= most) return shown;
  const all = button(`Show all ${list.length}`, () => {
    replace(shown, list.map(t => h('li', {}, t)));
    all.remove();
  });
  return h('div', {}, shown, all);
}

// revisionLink leads to a revision in the history.
export function revisionLink(n) { return link(toHash('history', {revision: n}), `revision ${n}`); }

const namesFor = 60000; // ms for which the names of ports are kept
const naming = {at: 0, whose: '', say: null};

// portSayer is a function that puts the names of ports beside their GUIDs in a sentence.
export function portSayer() {
  const whose = (api.session() || {}).session;
  if (naming.say && naming.whose === whose && Date.now() - naming.at < namesFor) return naming.say;
  Object.assign(naming, {at: Date.now(), whose, say: api.all('/ports', {}, {background: true}).then(ports => sayer(index(ports)))});
  naming.say.catch(() => { naming.say = null; });
  return naming.say;
}

// ago is how long before now a moment was, in words.
export function ago(at) { return span(Date.now() - new Date(at).getTime()); }

// proved says since when every table that isolates was read back, and when the verdict was proved.
export function proved(x) {
  return [x.checked_at ? ['checked ', time(x.checked_at), ', '] : '', 'proved ', time(x.read_at)];
}

// seconds is a duration that can be read.
export function seconds(s) {
  if (s >= 90) return `${Math.round(s / 60)} min`;
  if (s >= 10) return `${Math.round(s)} s`;
  if (s >= 1) return `${s.toFixed(1)} s`;
  return `${Math.max(1, Math.round(s * 1000))} ms`;
}

// steady draws what a part of a page holds again, and leaves what was opened open, what was scrolled
// where it was, and the focus too: what is live must not take it away.
export function steady(part, draw) {
  const key = x => `${x.localName} ${x.getAttribute('href') || x.getAttribute('aria-label') || (x.querySelector('caption') || x).textContent}`;
  const active = part.contains(document.activeElement) ? key(document.activeElement) : '';
  const open = new Map([...part.querySelectorAll('details')].map(d => [key(d.firstChild), d.open]));
  const scrolled = new Map([...part.querySelectorAll('.long')].map(x => [key(x), x.scrollTop]));
  draw();
  for (const x of part.querySelectorAll('.long')) x.scrollTop = scrolled.get(key(x)) || x.scrollTop;
  for (const d of part.querySelectorAll('details')) if (open.has(key(d.firstChild))) d.open = open.get(key(d.firstChild));
  if (!active || part.contains(document.activeElement)) return;
  const again = [...part.querySelectorAll('a, button, input, select, summary, [tabindex]')].find(x => key(x) === active);
  if (again) again.focus({preventScroll: true});
}
