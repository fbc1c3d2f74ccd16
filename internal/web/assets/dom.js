// Building blocks of pages. Text becomes text, never markup: no string is parsed as HTML.

export {table} from './table.js';

// h makes an element. props are attributes; those that begin with "on" are listeners, a
// value of false, null or undefined leaves one out, and true sets it empty. Children are
// nodes, texts, and lists of them.
export function h(tag, props, ...children) {
  const e = document.createElement(tag);
  set(e, props);
  append(e, children);
  return e;
}

const SVG = 'http://www.w3.org/2000/svg';

// svg makes an element of a drawing, as h does.
export function svg(tag, props, ...children) {
  const e = document.createElementNS(SVG, tag);
  set(e, props);
  append(e, children);
  return e;
}

function set(e, props) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (name === 'value') e.value = value;
    else e.setAttribute(name, value === true ? '' : /^(aria-|title$|placeholder$)/.test(name) ? plain(value) : value);
  }
}

function append(e, children) {
  for (const c of children.flat(Infinity)) {
    if (c === null || c === undefined || c === false) continue;
    e.append(c instanceof Node ? c : plain(c));
  }
}

// Characters that are not seen, or change how those beside them are read: controls, and
// marks and overrides of direction. Devices may call themselves so to look like others.
const unseen = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

// plain is a text in which such characters have become their numbers, as \u202e.
export function plain(text) { return String(text).replace(unseen, c => `\\u${c.codePointAt(0).toString(16).padStart(4, '0')}`); }

// replace puts children in the place of what an element holds.
export function replace(e, ...children) {
  e.replaceChildren();
  append(e, children);
  return e;
}

let names = 0;

// unique is an id that no other element has.
export function unique(prefix) { return `${prefix}-${++names}`; }

// field is a labelled control with a place for its fault; control is made by h. hint says
// what may be entered.
export function field(label, control, hint) {
  if (!control.id) control.id = unique('field');
  const fault = h('p', {class: 'fault', id: `${control.id}-fault`, role: 'alert'});
  const described = [fault.id];
  const more = hint ? h('p', {class: 'hint', id: `${control.id}-hint`}, hint) : null;
  if (more) described.push(more.id);
  control.setAttribute('aria-describedby', described.join(' '));
  const box = h('div', {class: 'field'}, h('label', {for: control.id}, label), control, more, fault);
  box.control = control;
  box.fault = text => {
    replace(fault, text || '');
    if (text) control.setAttribute('aria-invalid', 'true');
    else control.removeAttribute('aria-invalid');
  };
  return box;
}

// button is a button that does something; while that is under way it cannot be pressed
// again. A failure is told to fail, if there is one.
export function button(label, action, props = {}) {
  const {fail, ...rest} = props;
  const b = h('button', {type: 'button', ...rest}, label);
  b.addEventListener('click', async event => {
    if (b.getAttribute('aria-disabled') === 'true') return;
    b.setAttribute('aria-disabled', 'true');
    try {
      await action(event);
    } catch (e) {
      if (fail) fail(e);
      else notify(e.message, 'bad');
    } finally {
      b.removeAttribute('aria-disabled');
    }
  });
  return b;
}

// link leads to a page of the console.
export function link(hash, ...children) { return h('a', {href: hash}, children); }

// toHash is the hash of a page with parameters: toHash('why', {from: 1}).
export function toHash(page, params = {}) {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== '' && v !== null && v !== undefined) query.set(k, v);
  const text = query.toString();
  return `#/${page}${text ? `?${text}` : ''}`;
}

// params is what the address says of its page.
export function params() { return Object.fromEntries(new URLSearchParams(window.location.hash.split('?')[1] || '')); }

// shownPage is the name of the page that is shown.
export function shownPage() { return document.getElementById('main')?.dataset.page; }

// remember writes into the address how a page is set, unless that was left; '' leaves a
// parameter out. With step, Back undoes it.
export function remember(page, changes, step = false) {
  const hash = toHash(page, {...params(), ...changes});
  const named = window.location.hash.replace(/^#\/?/, '').split('?')[0]; // is another page while Back or Forward is under way
  if (page === shownPage() && (named === page || !named) && hash !== window.location.hash) window.history[step ? 'pushState' : 'replaceState'](null, '', hash);
}

// facts is a description list of names and values; values that are undefined are left out.
export function facts(pairs) {
  return h('dl', {class: 'facts'}, pairs.filter(([, v]) => v !== undefined && v !== null && v !== '').map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v))));
}

// mark is a short word with a sign that tells without its colour: kind is good, bad, warn,
// unknown or plain.
export function mark(kind, text) {
  const sign = {good: '✓', bad: '✕', warn: '!', unknown: '?', plain: ''}[kind] ?? '';
  return h('span', {class: `mark ${kind}`}, sign ? h('span', {'aria-hidden': 'true'}, sign) : null, text);
}

// verdictMark shows a verdict of a proof.
export function verdictMark(verdict) {
  const kind = {isolated: 'good', 'isolated-unguarded': 'warn', 'isolated-by-end-ports': 'warn', violated: 'bad'}[verdict] || 'unknown';
  return mark(kind, verdict || 'unknown');
}

const clock = {ahead: 0}; // ms that the service's clock is ahead of the browser's

// serviceTime takes the time of an answer of the service, to the second: ages are by its clock.
export function serviceTime(text) {
  const ahead = Date.parse(text) - Date.now();
  clock.ahead = Math.abs(ahead) > 2000 ? ahead : 0;
}

// before is the moment so many ms ago, by the service's clock.
export function before(ms) { return new Date(Date.now() + clock.ahead - ms); }

// time shows how long ago a moment was, or when it will be, and goes on doing so; its title is
// the full time, local and UTC.
export function time(at) {
  const date = new Date(at);
  if (!at || Number.isNaN(date.getTime()) || date.getFullYear() < 2000) return h('span', {}, 'never');
  return h('time', {datetime: date.toISOString(), title: `${stamp(date)} here, ${date.toISOString()}`}, when(date));
}

const farAway = 48 * 3600 * 1000; // ms from which on a moment is shown by its date

function when(date) {
  const away = date.getTime() - Date.now() - clock.ahead;
  if (Math.abs(away) >= farAway) return stamp(date).slice(0, 16);
  return away > 1000 ? `in ${span(away)}` : `${span(-away)} ago`;
}

setInterval(() => {
  for (const e of /** @type {NodeListOf<HTMLTimeElement>} */ (document.querySelectorAll('time[datetime]'))) {
    const text = when(new Date(e.dateTime));
    if (e.textContent !== text) e.textContent = text;
  }
}, 1000);

// span is a duration of so many ms in words.
export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 90) return `${s} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 48 * 3600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} days`;
}

// stamp is a moment of local time as 2026-11-23 07:04:05.
export function stamp(date) {
  const two = n => String(n).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

// count is a number with its noun.
export function count(n, one, many = `${one}s`) { return `${n.toLocaleString('en')} ${n === 1 ? one : many}`; }

// bytes is a number of bytes in a unit that can be read.
export function bytes(n) {
  const units = ['', 'k', 'M', 'G', 'T'];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) { n /= 1000; i++; }
  return `${n >= 100 || i === 0 ? Math.round(n) : n.toFixed(1)} ${units[i]}B`;
}

// dialog asks before something is done: it opens, and answers true where the button was
// pressed. Escape and the other button leave all as it is.
export function dialog(title, content, action = 'OK', {danger = false} = {}) {
  return new Promise(resolve => {
    const id = unique('dialog');
    const d = h('dialog', {'aria-labelledby': id}, h('h2', {id}, title), content,
      h('div', {class: 'actions'},
        h('button', {type: 'button', class: danger ? 'danger' : 'primary', onclick: () => { d.close('yes'); }}, action),
        h('button', {type: 'button', onclick: () => d.close('no')}, 'Cancel')));
    d.addEventListener('close', () => { d.remove(); resolve(d.returnValue === 'yes'); });
    document.body.append(d);
    d.showModal();
  });
}

// notify tells something in the corner of the page, and to screen readers.
export function notify(text, kind = 'plain') {
  const place = document.getElementById('notices');
  if (!place) return;
  const e = h('p', {class: `notice ${kind}`}, mark(kind, text), h('button', {type: 'button', class: 'plain', 'aria-label': 'Close this message', onclick: () => e.remove()}, '×'));
  place.append(e);
  while (place.children.length > 4) place.firstChild.remove();
  if (kind !== 'bad') setTimeout(() => e.remove(), 12000);
}

// settle calls f at most so often, and once more after the last call.
export function settle(f, ms) {
  let timer = 0;
  return () => { if (!timer) timer = setTimeout(() => { timer = 0; f(); }, ms); };
}
