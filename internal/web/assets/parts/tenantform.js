// The form of a tenant: its P_Keys, quotas and rules.
//
// For tests: [data-form=tenant]; its fields have names.

import {button, field, h, notify} from '../dom.js';
import * as api from '../api.js';

const goodName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$/;
const key = /^0x[0-9a-f]{4}$/i;

const quotas = [
  ['partitions', 'Partitions, at most', 32766], ['members', 'Members of them together, at most', 100000000],
  ['keys_per_port', 'Partitions of one port, at most', 32766], ['changes_per_minute', 'Changes a minute, at most', 1000000],
];

// range reads a range of P_Keys: 0x0100-0x01ff. Nothing is no range; what is none is null.
export function range(text) {
  const t = text.trim();
  if (!t) return undefined;
  const [first, last = first, more] = t.split('-').map(x => x.trim());
  return more === undefined && key.test(first) && key.test(last) && parseInt(first, 16) <= parseInt(last, 16) ? {first, last} : null;
}

// tenantForm is the form of a tenant, or of a new one; made is called with its name.
export function tenantForm(app, tenant, made) {
  const t = tenant || {quota: {}};
  const name = tenant ? null : field('Name', h('input', {type: 'text', name: 'name', maxlength: '40', autocomplete: 'off', spellcheck: 'false'}), 'Letters, digits, _, . and -.');
  const keys = field('P_Keys', h('input', {type: 'text', name: 'keys', maxlength: '20', autocomplete: 'off', spellcheck: 'false', value: t.keys ? `${t.keys.first}-${t.keys.last}` : ''}),
    'The numbers that its partitions may have, such as 0x0100-0x01ff. Without, it has no partition.');
  const limits = quotas.map(([id, title, max]) => [id, field(title, h('input', {type: 'number', name: id, min: '0', max: String(max), step: '1', value: t.quota[id] || ''}), 'Empty: no limit.')]);
  const box = (title, id) => {
    const c = h('input', {type: 'checkbox', name: id});
    c.checked = Boolean(t[id]);
    return [c, h('label', {class: 'tick'}, c, ' ', title)];
  };
  const [approve, approveLabel] = box('Removals wait until a second person approves them', 'approve_removals');
  const [known, knownLabel] = box('Ports that the fabric has not seen are refused', 'known_ports_only');
  const why = field('Why', h('input', {type: 'text', name: 'why', maxlength: '500'}), 'The reason, for the history.');
  const fault = h('p', {class: 'fault', role: 'alert'});
  const repeat = api.repeatKey();
  const send = async () => {
    fault.textContent = '';
    if (name) name.fault('');
    keys.fault('');
    const named = tenant ? tenant.name : name.control.value.trim();
    const k = range(keys.control.value);
    if (!goodName.test(named)) return wrong(name, 'Want a name: letters, digits, _, . and -, at most 40.');
    if (k === null) return wrong(keys, 'Want a range such as 0x0100-0x01ff, within 0x0001 to 0x7ffe.');
    const quota = {};
    for (const [id, f] of limits) if (Number(f.control.value)) quota[id] = Number(f.control.value);
    const body = {...(k ? {keys: k} : {}), quota, approve_removals: approve.checked, known_ports_only: known.checked};
    try {
      await api.write('PUT', `/tenants/${named}`, body, {why: why.control.value.trim(), repeat, ...(tenant ? {ifMatch: `"${tenant.changed}"`} : {ifNoneMatch: '*'})});
    } catch (e) {
      fault.textContent = e.status === 412 ? (tenant ? 'Somebody has changed this tenant since it was read: open the page again, and change it then.' : 'There is a tenant of this name already.') : e.message;
      return undefined;
    }
    notify(tenant ? `Tenant ${named} is changed.` : `Tenant ${named} is made.`, 'good');
    return made(named);
  };
  return h('form', {'data-form': 'tenant', onsubmit: e => { e.preventDefault(); }},
    h('div', {class: 'columns'}, name, keys, limits.map(([, f]) => f)), h('div', {}, approveLabel, knownLabel), why, fault,
    h('div', {class: 'actions'}, button(tenant ? 'Save' : 'Create the tenant', send, {class: 'primary', 'data-do': 'save'})));
}

function wrong(f, text) {
  f.fault(text);
  f.control.focus();
}
