// The palette (Ctrl-K): one field that finds whatever has a name or a number, and what can be
// done. What it finds is what the API tells this caller, read when it is opened.

import {field, h, replace, toHash} from '../dom.js';
import * as api from '../api.js';
import {latest} from '../map/way.js';
import {combo} from './combo.js';
import {showKeys} from './keys.js';
import {find, guid, label, named} from './ports.js';
import {allPorts} from './portbox.js';

const shown = 20; // choices in the list at once
const revisionsRead = 200; // of the newest; an older one is found by its number

// What can be done with a port whose name follows the word.
const verbs = {
  why: {title: 'Whom it talks with, and why', to: p => toHash('why', {from: p.guid})},
  move: {title: 'Move it', writes: true, to: p => toHash('change', {task: 'move', ports: p.guid})},
};

// entry is a choice: keys find it alone, text by any part of it, and to is where it leads: a
// hash or a function.
function entry(name, hint, to, keys = [], more = '') {
  return {name, hint, to, keys: [name, ...keys].map(k => String(k).toLowerCase()), text: [name, hint, ...keys, more].join(' ').toLowerCase()};
}

// actions are what can be done, for whoever may.
function actions(app, pages) {
  const writes = !app.session.read_only;
  return [
    ...pages.map(p => entry(p.title, 'page', toHash(p.name))),
    entry('Why can two ports talk, or not?', 'action', toHash('why')),
    ...writes ? [
      entry('Move ports', 'action', toHash('change', {task: 'move'})),
      entry('Members of a partition', 'action: add, change and remove them', toHash('change', {task: 'members'})),
      ...app.provider ? [entry('Give ports to a tenant', 'action', toHash('change', {task: 'give'})), entry('Take ports from tenants', 'action', toHash('change', {task: 'take'}))] : [entry('Offer ports', 'action: to another tenant', toHash('change', {task: 'offer'}))],
      entry('Roll back', 'action: to an earlier revision', toHash('history', {rollback: 'which'})),
    ] : [],
    entry('Keys', 'action: list them', showKeys, ['?']),
    ...[.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('main .save:not([hidden]) [data-save]'))].map(b => entry(`Save: ${b.dataset.save}`, 'action: export what this page shows', () => b.click(), ['export'])),
  ];
}

function devices(map) {
  const {guid: guids, name, type, lid = []} = map.nodes;
  return guids.map((g, i) => entry(name[i], `${['host', 'switch', 'router'][type[i]]} ${g}${lid[i] ? `, LID ${lid[i]}` : ''}`, toHash('fabric', {node: g}), [g, lid[i] || '']));
}

function portEntry(p) {
  const to = p.node_guid ? toHash('fabric', {node: p.node_guid, port: p.number}) : toHash('tenants', {name: p.owner});
  return entry(p.node ? `${p.node}:${p.number}` : p.guid, `end port ${p.guid}${p.lid ? `, LID ${p.lid}` : ''}${p.owner ? `, ${p.owner}` : ''}`, to, [p.guid, p.lid || '']);
}

function partitionEntry(p, app) {
  const n = parseInt(p.pkey, 16);
  return entry(p.name || p.pkey, `partition ${p.pkey}, of ${p.owner}`, toHash('tenants', {name: app.provider ? p.owner : ''}), [p.pkey, `0x${n.toString(16)}`, `0x${(n | 0x8000).toString(16)}`]);
}

function revisionEntry(r) {
  return entry(`Revision ${r.revision}`, [r.action, r.why].filter(Boolean).join(': '), toHash('history', {revision: r.revision}), [r.revision], (r.words || []).join(' '));
}

// read fills what the palette finds, kind by kind, and calls changed after each answer.
async function read(app, known, changed) {
  const parts = [
    latest().then(devices),
    allPorts().then(ports => { known.ports = ports; return ports.list.map(portEntry); }),
    api.all('/tenants').then(list => list.map(t => entry(t.name, 'tenant', toHash('tenants', {name: t.name})))),
    api.all('/partitions').then(list => list.map(p => partitionEntry(p, app))),
    api.get('/revisions', {limit: revisionsRead}).then(page => { known.oldest = page.next ? page.items.at(-1).revision : 0; return page.items.map(revisionEntry); }),
  ];
  await Promise.all(parts.map((p, i) => p.then(list => { known.entries[i + 1] = list; }, e => { known.faults.add(e.message); }).then(changed)));
  known.over = true;
  changed();
}

// done are the choices for a word that says what to do and a port behind it, or two: why red-1,
// why red-1 blue-1.
function done(words, known, app) {
  const verb = verbs[words[0]];
  if (!verb || words.length < 2 || !known.ports || verb.writes && app.session.read_only) return [];
  const two = [];
  for (let i = 2; words[0] === 'why' && i < words.length; i++) {
    const [a, b] = [words.slice(1, i), words.slice(i)].map(w => named(known.ports, w.join(' ')).port);
    if (a && b) two.push(entry(`Why: ${label(a)} and ${label(b)}`, 'action: whether they can talk', toHash('why', {from: a.guid, to: b.guid})));
  }
  return [...two, ...find(known.ports, words.slice(1).join(' '), shown).hits.map(p => entry(`${verb.title}: ${label(p)}`, `action, ${p.guid}`, verb.to(p)))];
}

// search are the choices for a text: first what is called so, then what begins so, then what has
// every word somewhere.
export function search(text, known, app) {
  const whole = guid(text) || text.trim().toLowerCase();
  const lid = /^lid (\d+)$/.exec(whole);
  const words = (lid ? lid[1] : whole).split(/\s+/).filter(Boolean);
  const ranks = [done(words, known, app), [], [], []];
  const key = words.join(' ');
  for (const e of known.entries.flat()) {
    if (e.keys.includes(key)) ranks[1].push(e);
    else if (lid || !words.every(w => e.text.includes(w))) continue;
    else ranks[e.name.toLowerCase().startsWith(key) ? 2 : 3].push(e);
  }
  const n = Number(key);
  if (/^[1-9]\d*$/.test(key) && n < known.oldest) ranks[1].push(revisionEntry({revision: n}));
  return ranks.flat();
}

// openPalette opens it; pages are those that the caller may see.
export function openPalette(app, pages) {
  const known = {entries: [actions(app, pages)], ports: null, oldest: 0, faults: new Set(), over: false};
  const input = h('input', {type: 'text', maxlength: '100'});
  const said = h('p', {class: 'hint', role: 'status'});
  const choices = combo(input, 'What was found', text => {
    const hits = search(text, known, app);
    replace(said, !known.over ? 'Reading …' : hits.length === 0 ? 'Nothing is called so.' : hits.length > shown ? `The first ${shown} of ${hits.length.toLocaleString('en')}` : '',
      known.faults.size ? ` Not all could be read: ${[...known.faults].join('; ')}.` : '');
    return hits.slice(0, shown);
  }, hit => {
    d.close();
    if (typeof hit.to === 'function') hit.to();
    else window.location.hash = hit.to;
  }, {first: true});
  const d = h('dialog', {class: 'palette', 'aria-label': 'Find', onclose: () => d.remove()},
    field('Find', input, 'Host, GUID, LID, tenant, partition, revision, page or action; why HOST, move HOST.'), choices.list, said);
  document.body.append(d);
  d.showModal();
  choices.search();
  // What arrives does not move the mark from what somebody has gone to.
  read(app, known, () => { if (d.open && choices.at <= 0) choices.search(); });
}
