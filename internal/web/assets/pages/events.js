// Events: what happens, as it happens.

import {button, count, h, mark, remember, replace, time} from '../dom.js';
import {choice, outcomeMark, revisionLink, search, section, steady} from '../parts/controls.js';

const shownMost = 500; // events in the list
const drawEvery = 200; // ms between two updates of the list

// What an event is called and how it is marked, by its kind.
const kinds = {
  revision: ['plain', 'change'], outcome: ['plain', 'outcome'], manager: ['plain', 'manager'], reset: ['warn', 'events are missing'],
};

// Events of the manager that tell of something wrong; others are plain.
const bad = new Set(['fenced', 'no-master', 'several-masters', 'rogue-manager', 'unexpected-master', 'write-failed', 'refused', 'may-not-write', 'master-flapping', 'other-policy-guarded']);
const warn = new Set(['link-down', 'link-flapping', 'foreign-change', 'fault', 'warning', 'master-changed', 'takeover', 'standby', 'slept', 'other-policy', 'trap-256', 'trap-257', 'trap-258', 'trap-259',
  'trap-129', 'trap-130', 'trap-131', 'trap-disbelieved', 'too-many-traps', 'm-keys-released', 'forgotten', 'may-write', 'unfenced']);
const good = new Set(['link-up', 'one-master', 'same-policy']);

export default {name: 'events', title: 'Events', render};

function render(main, params, app) {
  const set = {kind: params.kind || '', text: params.text || ''};
  const paused = {at: null}; // the events that are shown while the list stands still
  const list = h('ol', {class: 'events', 'aria-label': 'Events, the newest first'});
  const note = h('p', {class: 'hint', role: 'status'});
  const draw = () => {
    const all = paused.at || app.events;
    const found = all.filter(e => matches(e, set));
    steady(list, () => replace(list, found.slice(-shownMost).reverse().map(entry)));
    const waiting = paused.at ? app.events.filter(e => !paused.seen.has(e.id)).length : 0;
    replace(note, all.length === 0 ? 'No event yet.' : found.length === 0 ? 'No such event.' : found.length > shownMost ? `The newest ${shownMost} of ${count(found.length, 'event')}.` : `${count(found.length, 'event')}.`,
      paused.at ? ` The list stands still; ${count(waiting, 'event')} since.` : ' New ones appear at the top.');
  };
  let timer = 0;
  app.onEvent(() => { if (!timer) timer = setTimeout(() => { timer = 0; draw(); }, drawEvery); });
  const pause = button('Pause', () => {
    if (paused.at) paused.at = null;
    else Object.assign(paused, {at: [...app.events], seen: new Set(app.events.map(e => e.id))});
    pause.setAttribute('aria-pressed', paused.at ? 'true' : 'false');
    draw();
  }, {'aria-pressed': 'false'});
  const changed = (name, value, step) => { set[name] = value; remember('events', {[name]: value}, step); draw(); };
  replace(main, section('Live', 'events', h('div', {class: 'row filters'},
    choice('Kind', [['', 'any'], ['revision', 'changes'], ['outcome', 'outcomes'], ['manager', 'of the subnet manager'], ['trouble', 'trouble alone']], set.kind, v => changed('kind', v, true)),
    search('Text', set.text, v => changed('text', v), 'In the text or the name of the event.'),
    pause), note, list));
  draw();
  return () => clearTimeout(timer);
}

export function severity(e) {
  if (e.kind === 'outcome' && e.outcome) return {failed: 'bad', refused: 'bad', proved: 'good'}[e.outcome.state] || 'plain';
  if (e.kind === 'manager') return bad.has(e.name) ? 'bad' : warn.has(e.name) ? 'warn' : good.has(e.name) ? 'good' : 'plain';
  return (kinds[e.kind] || ['plain'])[0];
}

function matches(e, set) {
  if (set.kind === 'trouble') {
    if (!['bad', 'warn'].includes(severity(e))) return false;
  } else if (set.kind && e.kind !== set.kind) {
    return false;
  }
  const part = set.text.trim().toLowerCase();
  return !part || [e.text, e.name || '', e.revision ? `revision ${e.revision}` : ''].join('\n').toLowerCase().includes(part);
}

function entry(e) {
  const word = e.kind === 'manager' ? e.name || 'manager' : (kinds[e.kind] || ['', e.kind])[1];
  return h('li', {'data-event': e.id, 'data-kind': e.kind, 'data-name': e.name}, time(e.at), mark(severity(e), word),
    h('span', {class: 'text'}, e.kind === 'outcome' && e.outcome ? [outcomeMark(e.outcome), ' '] : [e.text, ' '], e.revision ? revisionLink(e.revision) : null));
}
