// Overview: the verdict and how old it is, what is wrong and whom it concerns, what waits for
// consent, what changed, and what room is left. A tenant sees its own part.
//
// For tests: [data-alarm] each alarm with its kind; [data-waits] each partition with requests.

import {button, count, dialog, field, h, link, mark, notify, replace, settle, table, time, toHash, verdictMark} from '../dom.js';
import * as api from '../api.js';
import {approvals} from '../parts/approvals.js';
import {outcomeMark, portSayer, proved, revisionLink, section, steady, texts} from '../parts/controls.js';
import {severity} from './events.js';
import {sentences} from './history-diff.js';
import {meanings} from './proof.js';
import {of} from './tenants.js';

const rereadAfter = 1000; // ms from an event to the next read
const changesShown = 5; // revisions
const eventsShown = 5;
const alarmsWhole = 20; // alarms that are drawn whole
const alarmsMost = 5000; // that are read
const roomShown = 8; // tenants: those with least room
const kinds = {critical: 'bad', high: 'bad', medium: 'warn', low: 'plain', unknown: 'unknown'};

export default {name: 'overview', title: 'Overview', render};

async function render(main, params, app) {
  const state = {audit: false, say: w => w, read: null, list: null};
  state.list = alarmTable(state, app);
  const verdict = section('Verdict', 'verdict'), wrong = section('What is wrong now', 'wrong'), waits = section('What waits for consent', 'waits');
  const changed = section('What changed', 'changed'), room = section('Room left', 'room');
  const approving = await approvals(app, () => read());
  const quiet = {background: true};
  const alarms = async () => {
    const query = app.provider && state.audit ? {audit: true} : {};
    const list = await api.all('/alarms', query, {most: alarmsMost, ...quiet});
    const managers = app.provider ? await api.all('/managers', {}, quiet) : [];
    showWrong(wrong.body, [...ofService(app.status || await api.item('/status', {}, quiet), managers), ...list], list.more, state, app);
  };
  const read = async () => {
    const [proof, tenants, partitions, revisions] = await Promise.all([
      api.item('/proof', {}, quiet), api.all('/tenants', {}, quiet), api.all('/partitions', {}, quiet), api.all('/revisions', {limit: changesShown}, {most: changesShown, ...quiet}), alarms(),
    ]);
    showVerdict(verdict.body, proof);
    showWaits(waits, partitions, approving.box, app);
    showChanged(changed.body, revisions, app, state);
    showRoom(room.body, tenants, partitions, app);
  };
  state.read = alarms;
  replace(main, h('div', {class: 'columns'}, verdict, waits), wrong, approving.box, h('div', {class: 'columns'}, changed, room));
  await read();
  const failed = e => notify(e.message, 'bad');
  const soon = settle(() => Promise.all([read(), approving.read()]).catch(failed), rereadAfter);
  app.onEvent(soon);
  app.every(10000, async () => showVerdict(verdict.body, await api.item('/proof', {}, quiet)));
  // The audit of a large fabric takes seconds: it comes when the rest is there.
  state.audit = true;
  if (app.provider) alarms().catch(failed);
  portSayer().then(say => { state.say = say; return read(); }).catch(() => {}); // GUIDs do without names
}

function showVerdict(body, p) {
  const c = p.counts;
  steady(body, () => replace(body,
    h('p', {class: 'verdict', 'data-verdict': p.verdict}, verdictMark(p.verdict)),
    h('p', {}, meanings[p.verdict] || ''), h('p', {'data-age': true}, proved(p), '.'),
    h('p', {}, `It rests on ${count(c.pairs, 'pair')} of ${count(c.partitions, 'partition')} and ${count(c.end_ports, 'end port')}.`),
    h('p', {}, link('#/proof', 'The whole proof'))));
}

// ofService are alarms of what no part of the fabric is wrong with.
function ofService(status, managers) {
  const list = [];
  const add = (where, text, to) => list.push({kind: 'service', severity: 'critical', tenants: [], ports: [], where, text, to});
  if (status.store) add('the store', `No change is taken: ${status.store}`, '#/history');
  const masters = managers.filter(m => m.state === 'master' && !m.missed).length;
  if (managers.length && masters !== 1) add('subnet managers', `${masters} are master: want one`, '#/managers');
  for (const m of managers) if (m.why) add(m.node || m.port, `This subnet manager does not count: ${m.why}`, '#/managers');
  return list;
}

// fix is the page that shows more, or puts it right.
function fix(a, app) {
  if (a.to) return link(a.to, 'Look');
  if (a.kind === 'violation' && a.ports.length === 2) return link(toHash('why', {from: a.ports[0], to: a.ports[1], pkey: a.pkey}), 'Why they can');
  if (a.kind === 'cable') return link(toHash('fabric', {node: a.node}), 'On the map');
  if (a.kind === 'port') return link(toHash('tenants', {name: a.tenants[0]}), 'The tenant');
  return link('#/proof', a.kind === 'audit' && app.provider ? 'Audit' : 'Proof');
}

function alarmTable(state, app) {
  return table('What is wrong, the worst first', [
    {title: 'Severity', cell: a => mark(kinds[a.severity], a.severity), head: false, sort: a => Object.keys(kinds).indexOf(a.severity)},
    {title: 'Concerns', cell: a => whom(a, app), sort: a => a.tenants.join()},
    {title: 'What', cell: a => [h('strong', {}, a.where), ': ', state.say(a.text), a.advice ? h('p', {class: 'hint'}, a.advice) : null], sort: a => a.where},
    {title: 'More', cell: a => fix(a, app)},
    {title: 'Known', cell: a => known(a, state, app), sort: a => (a.acknowledged ? a.acknowledged.note : '~')},
  ], [], {hideCaption: true, whole: alarmsWhole, onrow: (tr, a) => { tr.dataset.alarm = a.kind; }, choose: app.session.read_only ? null : {
    key: a => a.id || a.text, name: a => `${a.where}: ${a.text}`, actions: [['Acknowledge…', list => acknowledge(list.filter(a => a.id), state)]],
  }});
}

function showWrong(body, list, more, state, app) {
  state.list.update(list);
  const bad = app.events.filter(e => ['bad', 'warn'].includes(severity(e))).slice(-eventsShown).reverse();
  steady(body, () => replace(body,
    h('p', {role: 'status'}, list.length ? mark(kinds[list[0].severity], `${more ? 'more than ' : ''}${count(list.length, 'thing')} wrong, ${list.filter(a => a.acknowledged).length} acknowledged`) : mark('good', 'Nothing is known to be wrong')),
    list.length ? state.list : null,
    bad.length ? [h('h3', {}, 'What happened last'), h('ul', {class: 'texts'}, bad.map(e => h('li', {}, time(e.at), ' ', mark(severity(e), e.name || e.kind), ' ', e.text))), h('p', {}, link(toHash('events', {kind: 'trouble'}), 'All trouble'))] : null));
}

const lives = [['1', 'for a day'], ['7', 'for a week'], ['30', 'for 30 days'], ['', 'not any more']]; // days

// known says who of the caller's tenant knows of an alarm, and lets others say it.
function known(a, state, app) {
  if (!a.id) return '';
  const k = a.acknowledged;
  return [k ? h('p', {}, mark('plain', k.by), ' ', time(k.at), k.note ? [': ', h('q', {}, k.note)] : '', ', ends ', time(k.until)) : null,
    app.session.read_only ? null : button(k ? 'Change…' : 'Acknowledge…', () => acknowledge([a], state), {'data-do': 'acknowledge', 'aria-label': `${k ? 'Change' : 'Acknowledge'} ${a.where}: ${a.text}`})];
}

// acknowledge asks for a note, and says it of alarms one after the other.
async function acknowledge(list, state) {
  if (!list.length) return;
  const k = list.find(a => a.acknowledged)?.acknowledged;
  const note = field('Note', h('input', {maxlength: '500', autocomplete: 'off', value: k ? k.note : ''}), 'What is known of it, or done about it.');
  const life = field('Acknowledged', h('select', {}, lives.filter(([v]) => v || k).map(([v, t]) => h('option', {value: v}, t))));
  const what = list.length > 1 ? [count(list.length, 'alarm'), '.'] : `${list[0].where}: ${list[0].text}`;
  if (!await dialog('Acknowledge this?', h('div', {}, h('p', {}, what), h('p', {class: 'hint'}, 'It stays on the list, with who knows of it.'), note, life), 'Acknowledge')) return;
  const days = Number(life.control.value);
  const said = days ? {note: note.control.value.trim(), until: new Date(Date.now() + days * 86400000).toISOString()} : {};
  for (const a of list) await api.write('POST', '/alarms/acknowledge', {alarm: a.id, ...said}, {repeat: api.repeatKey()});
  await state.read();
}

function whom(a, app) {
  if (!app.provider) return 'you';
  return a.tenants.length ? a.tenants.map((t, i) => [i ? ', ' : '', link(toHash('tenants', {name: t}), t)]) : 'the fabric';
}

function showWaits(box, partitions, approving, app) {
  const waiting = partitions.filter(p => p.waiting);
  steady(box.body, () => replace(box.body,
    waiting.length ? h('ul', {class: 'texts'}, waiting.map(p => h('li', {'data-waits': p.pkey}, link(toHash('tenants', {name: app.provider ? p.owner : app.session.tenant}), p.name), ` of ${p.owner}: ${count(p.waiting, 'member')} waits for the other owner`))) : null,
    approving.hidden ? null : h('p', {}, mark('warn', 'changes wait for a second person'), ', below.'),
    waiting.length || !approving.hidden ? null : h('p', {class: 'empty'}, 'Nothing.')));
}

function showChanged(body, list, app, state) {
  steady(body, () => replace(body, list.length ? h('ol', {class: 'timeline'}, list.map(r => h('li', {},
    h('div', {class: 'head'}, revisionLink(r.revision), time(r.at), r.by ? h('span', {}, r.by, r.tenant ? ` for ${r.tenant}` : '') : null, outcomeMark(r.outcome)),
    r.why ? h('p', {}, h('q', {}, r.why)) : null, texts(sentences(r.words).map(state.say), 2)))) : h('p', {class: 'empty'}, 'Nothing yet.'),
  h('p', {}, link('#/history', 'All changes'))));
}

// showRoom shows how much of each quota and range is used, the fullest tenants first.
function showRoom(body, tenants, partitions, app) {
  const members = new Map(), used = new Map();
  for (const p of partitions) {
    members.set(p.owner, (members.get(p.owner) || 0) + p.members);
    if (!p.file) used.set(p.owner, (used.get(p.owner) || 0) + 1);
  }
  const keys = t => (t.keys ? Number(t.keys.last) - Number(t.keys.first) + 1 : 0);
  const part = (n, most) => (most ? n / most : 0);
  const rows = tenants.filter(t => t.name !== 'provider').map(t => {
    const m = members.get(t.name) || 0, k = used.get(t.name) || 0;
    return {...t, m, k, full: Math.max(part(t.partitions, t.quota.partitions), part(m, t.quota.members), part(k, keys(t)))};
  }).sort((a, b) => b.full - a.full);
  steady(body, () => replace(body, table('What tenants use of what they may have', [
    {title: 'Tenant', cell: t => link(toHash('tenants', {name: t.name}), t.name)},
    {title: 'P_Keys', cell: t => of(t.k, keys(t)), number: true},
    {title: 'Partitions', cell: t => of(t.partitions, t.quota.partitions), number: true},
    {title: 'Members', cell: t => of(t.m, t.quota.members), number: true},
  ], rows.slice(0, roomShown), {hideCaption: true, empty: 'There are no tenants yet.'}),
  rows.length > roomShown && app.provider ? h('p', {}, link('#/tenants', `All ${rows.length}`), ', here those with least room.') : null));
}
