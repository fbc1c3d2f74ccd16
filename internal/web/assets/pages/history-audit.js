// The audit log: every decision, refusals too, and whether it is as it was written.

import {button, count, field, h, link, mark, notify, remember, replace, settle, table, time, toHash} from '../dom.js';
import * as api from '../api.js';
import {choice, search, section} from '../parts/controls.js';

const step = 200; // entries that are read at once

// one tells of two entries that are the same one. A tenant's have no number.
const one = (a, b) => a.sequence === b.sequence && a.time === b.time && a.request === b.request && a.action === b.action;

// auditLog is the part of the page; read fills it.
export function auditLog(app, params) {
  const set = {decision: params.decision || '', text: params.log || ''};
  let items = [], cursor = '';
  const list = table('Decisions, the newest first', [
    ...app.provider ? [{title: 'Entry', cell: e => e.sequence}] : [], {title: 'When', cell: e => time(e.time)},
    {title: 'Who', cell: e => e.caller}, {title: 'For', cell: e => e.tenant}, {title: 'What', cell: e => e.action},
    {title: 'Decision', cell: e => e.decision === 'refused' ? mark('bad', 'refused') : mark('good', e.decision)},
    {title: 'Reason, or revision', cell: e => e.reason || (e.revision ? link(toHash('history', {revision: e.revision}), `revision ${e.revision}`) : '')},
  ], [], {hideCaption: true, filter: false, empty: 'No such entry.', onrow: (tr, e) => { tr.dataset.decision = e.decision; tr.dataset.entry = e.sequence || ''; }});
  const more = button('Earlier', () => next());
  const draw = () => {
    const part = set.text.trim().toLowerCase();
    list.update(items.filter(e => !part || Object.values(e).join('\n').toLowerCase().includes(part)));
    more.hidden = !cursor;
  };
  const next = async () => {
    const page = await api.get('/audit-log', {limit: step, cursor, decision: set.decision});
    items.push(...page.items);
    cursor = page.next || '';
    draw();
  };
  const read = async () => { items = []; cursor = ''; await next(); };
  const newest = settle(async () => {
    try {
      const page = await api.get('/audit-log', {limit: step, decision: set.decision}, {background: true});
      const known = items.length ? page.items.findIndex(e => one(e, items[0])) : -1;
      items.unshift(...known < 0 ? page.items : page.items.slice(0, known));
      draw();
    } catch (e) { notify(e.message, 'bad'); }
  }, 1000);
  app.onEvent(e => { if (e.kind === 'revision') newest(); });
  const box = section('Audit log', 'audit-log', h('div', {class: 'row filters'},
    choice('Decision', [['', 'any'], ['refused', 'refused'], ['accepted', 'accepted']], set.decision, v => { set.decision = v; remember('history', {decision: v}, true); read().catch(e => notify(e.message, 'bad')); }),
    search('Text', set.text, v => { set.text = v; remember('history', {log: v}); draw(); }, 'Among the entries that are read.')), app.provider ? verification() : null, list, more);
  box.read = read;
  return box;
}

// verification checks the chain of hashes, and that it passes through heads that were written
// down elsewhere.
function verification() {
  const place = h('p', {role: 'status', 'data-verified': 'no'});
  const heads = field('Heads that were written down', h('textarea', {rows: '2', spellcheck: 'false'}), 'SEQUENCE:HASH, one a line, as the log of the service has them (event audit-head); none to check the chain alone.');
  const check = button('Verify the chain', async () => {
    heads.fault('');
    const list = heads.control.value.split('\n').map(s => (/\d+:[0-9a-f]+\s*$/i.exec(s) || [s])[0].trim()).filter(Boolean);
    const v = await api.item('/audit-log/verify', {head: list.join(',')});
    place.dataset.verified = v.holds ? 'holds' : 'broken';
    replace(place, v.holds
      ? [mark('good', 'as it was written'), ` ${count(v.entries, 'entry', 'entries')}${list.length ? `, and it passes through ${count(list.length, 'head')}` : ''}; ${count(v.objects, 'object')} as the revisions wrote them; its head is now `, h('code', {}, v.head)]
      : [mark('bad', 'broken'), v.head || !v.sequence ? ` ${v.reason}` : ` at entry ${v.sequence}: ${v.reason}`],
      (v.differences || []).map(d => h('p', {}, `${d.key}: ${d.problem}${d.revision ? `; the last to write it: revision ${d.revision}` : ''}`)),
      (v.not_compared || []).map(text => h('p', {}, `Not compared: ${text}`)));
  }, {fail: e => heads.fault(e.message)});
  return h('details', {}, h('summary', {}, 'Is the log as it was written?'), heads, check, place);
}
