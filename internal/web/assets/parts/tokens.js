// Tokens of a tenant: which there are, a new one, whose secret is shown once, and their end.
//
// For tests: [data-token] each with its ID; [data-form=token]; [data-secret] the secret;
// [data-do=end] ends one.

import {button, dialog, field, h, mark, notify, replace, table, time} from '../dom.js';
import * as api from '../api.js';
import {range} from './tenantform.js';

const lifetimes = [['', 'never'], ['1', 'in a day'], ['7', 'in a week'], ['30', 'in 30 days'], ['90', 'in 90 days'], ['365', 'in a year']]; // days
const day = 86400000; // ms

// tokens is a part of the page of a tenant: {box, read()}.
export async function tokens(app, tenant) {
  const list = table('Tokens and certificates', [
    {title: 'ID', cell: t => h('code', {}, t.id), sort: t => t.id},
    {title: 'Kind', cell: t => ({uri: 'certificates with a URI'}[t.kind] || t.kind)},
    {title: 'For', cell: t => t.note || ''},
    {title: 'May', cell: t => [t.read_only ? 'read' : 'read and write', t.keys ? `, ${t.keys.first} to ${t.keys.last} alone` : '']},
    {title: 'Made', cell: t => time(t.created), sort: t => t.created},
    {title: 'Ends', cell: ends, sort: t => t.expires || '~'},
    ...(app.session.read_only ? [] : [{title: 'End it', cell: t => button('End…', () => end(t), {class: 'danger', 'data-do': 'end', 'aria-label': `End the token ${t.id} ${t.note || ''}`})}]),
  ], [], {empty: 'None: nobody acts for this tenant over the API.', onrow: (tr, t) => { tr.dataset.token = t.id; }});
  async function end(t) {
    const text = h('p', {}, `Whoever holds ${t.id}${t.note ? ` (${t.note})` : ''} can do nothing with it from then on, and sessions that it began end.`);
    if (!await dialog('End this token?', text, 'End it', {danger: true})) return;
    const answer = await api.write('DELETE', `/tokens/${t.id}`, undefined, {repeat: api.repeatKey()});
    notify(answer.approval ? 'A second person has to approve this: the token goes on until then.' : `${t.id} has ended.`, answer.approval ? 'warn' : 'good');
    await read();
  }
  async function read() {
    list.update(await api.all('/tokens', {tenant}, {background: true}));
  }
  await read();
  const form = app.session.read_only ? null : h('details', {open: true, 'data-do': 'token'}, h('summary', {}, 'Make a token'), newToken(tenant, read));
  return {box: h('section', {class: 'panel'}, list, form), read};
}

function ends(t) {
  if (!t.expires) return 'never';
  return Date.parse(t.expires) < Date.now() ? [mark('unknown', 'ended'), ' ', time(t.expires)] : time(t.expires);
}

// newToken is the form of a token; its secret is shown until the page is left.
function newToken(tenant, made) {
  const note = field('What it is for', h('input', {type: 'text', name: 'note', maxlength: '200'}), 'A note that tells it from others.');
  const life = field('Ends', h('select', {name: 'expires'}, lifetimes.map(([v, t]) => h('option', {value: v}, t))));
  const keys = field('P_Keys alone', h('input', {type: 'text', name: 'keys', maxlength: '20', autocomplete: 'off', spellcheck: 'false'}), 'Empty, or a range such as 0x0100-0x010f: it sees and changes no other partitions.');
  const readOnly = h('input', {type: 'checkbox', name: 'read_only'});
  const fault = h('p', {class: 'fault', role: 'alert'});
  const place = h('div', {role: 'status'});
  const make = async () => {
    fault.textContent = '';
    keys.fault('');
    const k = range(keys.control.value);
    if (k === null) {
      keys.fault('Want a range such as 0x0100-0x010f.');
      keys.control.focus();
      return;
    }
    const days = Number(life.control.value);
    const body = {tenant, read_only: readOnly.checked, ...(note.control.value.trim() ? {note: note.control.value.trim()} : {}), ...(k ? {keys: k} : {}), ...(days ? {expires: new Date(Date.now() + days * day).toISOString()} : {})};
    try {
      // Without a key for repeats: a repeated answer would not have the secret.
      const answer = await api.write('POST', '/tokens', body);
      replace(place, secret(answer));
      note.control.value = '';
      await made();
    } catch (e) {
      fault.textContent = e.message;
    }
  };
  return h('form', {'data-form': 'token', onsubmit: e => e.preventDefault()},
    h('div', {class: 'columns'}, note, life, keys), h('label', {class: 'tick'}, readOnly, ' It can read and not write'), fault,
    h('div', {class: 'actions'}, button('Make the token', make, {class: 'primary', 'data-do': 'make'})), place);
}

// secret shows a secret once, with a button that copies it.
function secret(answer) {
  const out = h('output', {class: 'mono secret', 'data-secret': true, tabindex: '0', 'aria-label': 'The token'}, answer.secret);
  const said = h('span', {role: 'status'});
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(answer.secret);
      replace(said, mark('good', 'copied'));
    } catch {
      // Where the page may not write to the clipboard, the token is marked for copying by hand.
      const range = document.createRange();
      range.selectNodeContents(out);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      replace(said, 'It is marked: copy it with the keys of your system.');
    }
  };
  return h('div', {class: 'once'},
    h('p', {}, `This is the token ${answer.token.id}. It is shown once: the service keeps only its SHA-256. Hand it over by a way that others do not read.`),
    out, h('div', {class: 'actions'}, button('Copy', copy, {'data-do': 'copy'}), said));
}
