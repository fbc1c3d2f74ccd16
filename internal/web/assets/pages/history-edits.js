// Objects before and after, one revision, and the difference of any two.

import {button, count, facts, h, link, mark, replace, table, time, toHash} from '../dom.js';
import * as api from '../api.js';
import {between, fields, lines, objectName, sentences} from './history-diff.js';
import {outcomeMark, portSayer, revisionLink, seconds, section, texts} from '../parts/controls.js';

const comparedMost = 1000; // revisions between two that are looked at
const atOnce = 6; // requests
const objectsFirst = 50; // that are shown at first
const openMost = 3; // objects whose fields are shown at once

// one shows a revision, and keeps its outcome up to date.
export async function one(main, number, app, names) {
  const box = section(`Revision ${number}`, 'revision');
  const read = async background => {
    const say = await portSayer();
    const answer = await api.get(`/revisions/${number}`, {}, {background});
    const r = answer.item;
    next.hidden = number >= answer.revision;
    since.hidden = number >= answer.revision;
    replace(box.body, facts([
      ['When', time(r.at)], ['Who', r.by ? names(r.by) : r.tenant || 'another tenant'], ['For', r.tenant], ['What', r.action], ['Reason', r.why],
      ['On the fabric', outcomeMark(r.outcome)],
      ['Took', r.outcome && r.outcome.seconds ? `${seconds(r.outcome.seconds)} to the verdict, ${count(r.outcome.writes, 'block')} of tables written` : undefined],
      ['Failures', r.outcome && r.outcome.failures ? r.outcome.failures : undefined],
    ]),
    r.outcome && r.outcome.reasons && r.outcome.reasons.length ? texts(r.outcome.reasons) : null,
    h('h3', {}, 'What it changed'), texts(sentences(r.words).map(say), 30),
    edits(r.edits || [], 'Objects before and after', say));
    return r;
  };
  const next = link(toHash('history', {revision: number + 1}), `Revision ${number + 1}`);
  const since = link(toHash('history', {from: number}), 'What changed since');
  const nav = h('p', {class: 'actions'}, link(toHash('history'), 'All changes'),
    number > 1 ? link(toHash('history', {revision: number - 1}), `Revision ${number - 1}`) : null,
    next, since);
  replace(main, nav, box);
  app.onEvent(e => { if (e.revision === number) read(true).catch(() => {}); });
  return read(false);
}

// edits shows objects, each with the fields that differ.
export function edits(list, title, say) {
  if (!list.length) return h('p', {class: 'hint'}, 'No object that you may see is different.');
  const place = h('div', {}, list.slice(0, objectsFirst).map(e => edit(e, list.length <= openMost, say)));
  const more = list.length > objectsFirst ? button(`Show all ${list.length}`, () => { replace(place, list.map(e => edit(e, false, say))); more.remove(); }) : null;
  return h('div', {'data-edits': list.length}, h('h3', {}, `${title}: ${count(list.length, 'object')}`), place, more);
}

function edit(e, open, say) {
  const what = e.before === undefined ? '+ made' : e.after === undefined ? '− removed' : '± changed';
  const place = h('div');
  // Of thousands of objects, what differs is drawn where it is looked at.
  const draw = () => {
    if (place.firstChild) return;
    replace(place, table(`Fields of ${objectName(e.key)}`, [
      {title: 'Field', cell: f => f.name},
      ...e.before === undefined || e.after === undefined ? [{title: 'Value', cell: f => longText(f) ? difference(f) : value(e.before === undefined ? f.after : f.before)}] : [
        {title: 'Before', cell: f => longText(f) ? '' : value(f.before)},
        {title: 'After', cell: f => longText(f) ? difference(f) : value(f.after)},
      ],
    ], fields(e.before, e.after), {hideCaption: true, empty: 'No field.'}));
  };
  if (open) draw();
  return h('details', {class: 'edit', 'data-key': e.key, open, ontoggle: draw},
    h('summary', {}, mark('plain', what), ' ', say(objectName(e.key))),
    e.first ? h('p', {class: 'hint'}, 'In ', revisionLink(e.first), e.first === e.last ? null : [' first, and last in ', revisionLink(e.last)]) : null, place);
}

const longText = f => [f.before, f.after].some(v => typeof v === 'string' && v.includes('\n'));

function value(v) {
  if (v === undefined) return h('span', {class: 'hint'}, 'none');
  if (v === true || v === false) return v ? 'yes' : 'no';
  return h('span', {class: 'mono'}, typeof v === 'object' ? JSON.stringify(v) : String(v));
}

function difference(f) {
  const words = {'+': 'added: ', '-': 'removed: ', ' ': ''};
  return h('pre', {class: 'lines', tabindex: '0', 'aria-label': 'Lines that differ'}, lines(f.before || '', f.after || '').map(l =>
    h('span', {class: l.sign === '+' ? 'added' : l.sign === '-' ? 'removed' : null}, h('span', {class: 'hidden'}, words[l.sign]), `${l.sign} ${l.text}\n`)));
}

// compare shows what changed after one revision up to another; to is the last one where it is
// not given.
export async function compare(main, from, to) {
  const status = h('p', {role: 'status'}, 'The revisions between are read …');
  const box = section(to ? `From revision ${from} to revision ${to}` : `Since revision ${from}`, 'compare', status);
  replace(main, h('p', {class: 'actions'}, link(toHash('history'), 'All changes'), to ? null : link(toHash('history', {rollback: from}), `Roll back to revision ${from}`)), box);
  const say = await portSayer();
  const numbers = await after(from, to);
  if (numbers.length > comparedMost) throw new Error(`There are ${numbers.length} revisions between the two: want at most ${comparedMost}.`);
  const revisions = [];
  for (let i = 0; i < numbers.length; i += atOnce) revisions.push(...await Promise.all(numbers.slice(i, i + atOnce).map(n => api.item(`/revisions/${n}`))));
  const list = between(revisions);
  replace(box.body,
    h('p', {role: 'status', 'data-compared': revisions.length}, `${count(revisions.length, 'revision')} in all. What was changed and changed back does not stand here.`),
    edits(list, 'What is different', say),
    h('details', {}, h('summary', {}, 'The revisions, one by one'), h('ul', {class: 'texts'},
      revisions.map(r => h('li', {}, revisionLink(r.revision), ', ', time(r.at), `: ${sentences(r.words).slice(0, 3).map(say).join('; ')}${r.words.length > 3 ? ' …' : ''}`)))));
}

// after are the numbers of the revisions that the caller sees after one, the oldest first.
async function after(from, to) {
  const out = [];
  let cursor = '';
  do {
    const page = await api.get('/revisions', {limit: 1000, cursor});
    for (const r of page.items) {
      if (r.revision <= from) return out.reverse();
      if (!to || r.revision <= to) out.push(r.revision);
    }
    cursor = page.next || '';
  } while (cursor && out.length <= comparedMost);
  return out.reverse();
}
