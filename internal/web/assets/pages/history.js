// History: changes as a time line, one of them, the difference of two, rolling back, and the
// audit log.

import {button, count, h, link, mark, notify, remember, replace, settle, time, toHash} from '../dom.js';
import * as api from '../api.js';
import {choice, outcomeMark, portSayer, search, section, steady, texts} from '../parts/controls.js';
import {sentences} from './history-diff.js';
import {compare, one} from './history-edits.js';
import {rollback} from './history-rollback.js';
import {auditLog} from './history-audit.js';

const day = 24 * 3600 * 1000; // ms
const sinces = [['', 'the beginning'], ['day', 'the last day'], ['week', 'the last week'], ['month', 'the last month']];
const spans = {day, week: 7 * day, month: 30 * day};
const step = 50; // changes that are shown at once
const pageSize = 200;
const lookedMost = 5000; // changes that one search looks through

export default {name: 'history', title: 'History', render};

async function render(main, params, app) {
  const number = n => /^[1-9]\d{0,15}$/.test(n || '') ? Number(n) : 0;
  const names = await whoNames();
  if (number(params.revision)) {
    const r = await one(main, number(params.revision), app, names);
    if (!app.session.read_only) main.append(h('p', {class: 'actions'}, link(toHash('history', {rollback: r.revision}), `Roll back to revision ${r.revision}`)));
    return undefined;
  }
  if (number(params.from)) return compare(main, number(params.from), number(params.to));
  if (params.rollback !== undefined) return rollback(main, number(params.rollback), app);
  const changes = timeLine(params, app, names);
  const log = auditLog(app, params);
  replace(main, changes, log);
  await Promise.all([changes.read(), log.read()]);
  return undefined;
}

// whoNames is what is said of those who make changes: the note of a token beside its ID.
async function whoNames() {
  const notes = new Map();
  try {
    for (const t of await api.all('/tokens')) if (t.note) notes.set(t.id, t.note);
  } catch (e) { if (e.status === 401) throw e; /* others may not list tokens */ }
  return by => notes.has(by) ? `${by} (${notes.get(by)})` : by;
}

function timeLine(params, app, names) {
  const set = {since: params.since || '', who: params.who || '', tenant: params.tenant || '', text: params.text || ''};
  const state = {items: [], cursor: '', over: false, chosen: new Set()};
  let say = w => w; // puts the names of ports beside their GUIDs, once they are read
  const list = h('ol', {class: 'timeline', 'aria-label': 'Changes, the newest first'});
  const note = h('p', {class: 'hint', role: 'status'});
  const more = button('Earlier', async () => { state.shown += step; await fill(); });
  const choose = button('What changed between the two', () => {
    const [from, to] = [...state.chosen].sort((a, b) => a - b);
    app.go('history', {from, to});
  }, {disabled: true});
  const draw = () => {
    const found = state.items.filter(r => matches(r, set, names));
    const shown = found.slice(0, state.shown);
    steady(list, () => replace(list, shown.map(r => entry(r, state, {names, say}, () => { choose.disabled = state.chosen.size !== 2; }))));
    more.hidden = state.over && found.length <= state.shown;
    replace(note, found.length ? summary(found, state.over, names) : 'No such change.');
    return found.length;
  };
  const fill = async () => {
    let looked = 0;
    while (!state.over && state.items.filter(r => matches(r, set, names)).length <= state.shown && looked < lookedMost) {
      const page = await api.get('/revisions', {limit: pageSize, cursor: state.cursor});
      looked += page.items.length;
      state.items.push(...page.items);
      state.cursor = page.next || '';
      const last = state.items.at(-1);
      state.over = !state.cursor || Boolean(set.since && last && Date.now() - Date.parse(last.at) > spans[set.since]);
    }
    draw();
  };
  const again = async () => {
    Object.assign(state, {items: [], cursor: '', over: false, shown: step});
    await fill();
  };
  // newest takes in what has happened: changes that are new, and outcomes.
  const newest = settle(async () => {
    try {
      const page = await api.get('/revisions', {limit: pageSize}, {background: true});
      const known = new Map(state.items.map((r, i) => [r.revision, i]));
      const fresh = page.items.filter(r => !known.has(r.revision));
      for (const r of page.items) if (known.has(r.revision)) state.items[known.get(r.revision)] = r;
      state.items.unshift(...fresh);
      draw();
    } catch (e) { notify(e.message, 'bad'); }
  }, 500);
  app.onEvent(e => { if (e.revision) newest(); });
  const changed = settle(() => { again().catch(e => notify(e.message, 'bad')); }, 200);
  const to = (name, step) => value => { set[name] = value; remember('history', {[name]: value}, step); changed(); };
  const box = section('Changes', 'changes', h('div', {class: 'row filters'},
    choice('Since', sinces, set.since, to('since', true)),
    search('Who', set.who, to('who'), 'ID or note of a token, or user.'),
    app.provider ? search('Tenant', set.tenant, to('tenant')) : null,
    search('Text', set.text, to('text'), 'In what was changed and in the reason.')),
  note, h('div', {class: 'actions'}, choose, h('span', {class: 'hint'}, 'Choose two revisions first.'), app.session.read_only ? null : link(toHash('history', {rollback: 'which'}), 'Roll back …')), list, more);
  box.read = async () => {
    await again();
    portSayer().then(f => { say = f; draw(); }, () => {}); // GUIDs do without names
  };
  return box;
}

function matches(r, set, names) {
  const has = (text, part) => text.toLowerCase().includes(part.trim().toLowerCase());
  return (!set.since || Date.now() - Date.parse(r.at) <= spans[set.since]) &&
    (!set.who || has(whoOf(r, names), set.who)) &&
    (!set.tenant || has([r.tenant || '', ...r.words].join('\n'), set.tenant)) &&
    (!set.text || has([r.action, r.why || '', ...r.words].join('\n'), set.text));
}

// summary says how many changes there are, and who made how many.
function summary(found, all, names) {
  const by = new Map();
  for (const r of found) by.set(whoOf(r, names), (by.get(whoOf(r, names)) || 0) + 1);
  const parts = [...by].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([who, n]) => `${who} ${n}`);
  return `${all ? '' : 'At least '}${count(found.length, 'change')}: ${parts.join(', ')}${by.size > 6 ? ` and ${by.size - 6} others` : ''}.`;
}

// whoOf is who made a change; a tenant is not told who of others it was.
function whoOf(r, names) { return r.by ? names(r.by) : r.tenant ? `the ${r.tenant}` : 'another tenant'; }

function entry(r, state, {names, say}, chosen) {
  const box = h('input', {type: 'checkbox', checked: state.chosen.has(r.revision), 'aria-label': `Compare revision ${r.revision}`, onchange: () => {
    if (box.checked) state.chosen.add(r.revision);
    else state.chosen.delete(r.revision);
    chosen();
  }});
  return h('li', {'data-revision': r.revision},
    h('div', {class: 'head'}, box, link(toHash('history', {revision: r.revision}), `Revision ${r.revision}`), time(r.at),
      h('span', {}, whoOf(r, names), r.by && r.tenant ? ` for ${r.tenant}` : ''), mark('plain', r.action), outcomeMark(r.outcome)),
    r.why ? h('p', {}, h('q', {}, r.why)) : null, texts(sentences(r.words).map(say), 4));
}
