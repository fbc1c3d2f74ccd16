// The form that changes the members of a partition, or makes one. What is changed stays a
// draft until its plan is applied.
//
// For tests: [data-member] each member with its GUID; [data-do=plan] shows the plan.

import {button, field, h, mark, remember, replace, table} from '../dom.js';
import * as api from '../api.js';
import {label, named, sayer} from './ports.js';
import {flow} from './flow.js';
import {memberSteps, partitionStep} from './steps.js';
import {picker} from './picker.js';

const fresh = 'new'; // in the place of a P_Key: a partition that is made
const goodName = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
const memberships = ['full', 'limited', 'both'];

// select is a labelled choice; options are [value, text].
export function select(title, options, value, hint, onchange) {
  const control = h('select', {onchange}, options.map(([v, t]) => h('option', {value: v}, t)));
  if (value !== undefined && options.some(([v]) => v === value)) control.value = value;
  return field(title, control, hint);
}

// tick is a labelled check box: a label, whose control is the box.
export function tick(title, checked = false, props = {}) {
  const control = h('input', {type: 'checkbox', ...props});
  control.checked = checked;
  return h('label', {class: 'tick'}, control, ' ', title);
}

export async function members(place, ctx) {
  const {app, params, partitions} = ctx;
  const draft = ctx.draft || {};
  const list = [...partitions.map(p => [p.pkey, `${p.name} (${p.pkey}), of ${p.owner}`]), [fresh, 'A new partition…']];
  const current = draft.partition || params.partition || list[0][0];
  const body = h('div');
  const choose = select('Partition', list, current, null, () => {
    // Another partition is another draft.
    remember('change', {partition: choose.control.value, add: '', remove: '', membership: '', why: ''}, true);
    show(choose.control.value, {}).catch(e => choose.fault(e.message));
  });
  const show = async (pkey, d) => {
    replace(body);
    if (pkey === fresh) make(body, ctx, d);
    else await edit(body, ctx, partitions.find(p => p.pkey === pkey), d);
  };
  replace(place, h('div', {class: 'panel'}, choose), body);
  if (params.partition && !list.some(([v]) => v === params.partition)) choose.fault(`There is no partition ${params.partition} that you see.`);
  const first = choose.control.value === current;
  await show(choose.control.value, first ? {...fromParams(params), ...draft} : {});
  if (app.session.read_only) replace(place);
}

// fromParams is the draft that the hash asks for.
function fromParams(params) {
  return {add: (params.add || '').split(',').filter(Boolean), remove: (params.remove || '').split(',').filter(Boolean), membership: params.membership, why: params.why};
}

// make is the form of a new partition.
function make(body, ctx, draft) {
  const name = field('Name', h('input', {type: 'text', maxlength: '64', autocomplete: 'off', spellcheck: 'false'}), 'Letters, digits, _, . and -.');
  const pkey = field('P_Key', h('input', {type: 'text', maxlength: '6', autocomplete: 'off', spellcheck: 'false'}), 'Such as 0x0100; empty for the lowest that is free.');
  const owner = ctx.app.provider ? select('Owner', ctx.tenants.map(t => [t.name, t.name]), draft.owner || ctx.params.owner || ctx.app.session.tenant) : null;
  const sl = field('Service level', h('input', {type: 'number', min: '0', max: '15', value: '0'}));
  const mtu = select('MTU', [['', 'the default'], ...[256, 512, 1024, 2048, 4096].map(n => [String(n), `${n} bytes`])]);
  const ipoib = tick('Make the broadcast group of IP over InfiniBand');
  const j = joining(draft);
  const ports = picker(ctx.ports, {title: 'Members', note: owns});
  const plan = () => {
    name.fault('');
    const text = name.control.value.trim();
    if (!goodName.test(text)) {
      name.fault('Want a name: letters, digits, _, . and -, the first a letter or digit.');
      name.control.focus();
      return;
    }
    const step = partitionStep({
      name: text, sl: Number(sl.control.value) || 0, ip_over_ib: ipoib.control.checked || undefined,
      ...(pkey.control.value.trim() ? {pkey: pkey.control.value.trim()} : {}), ...(owner ? {owner: owner.control.value} : {}), ...(mtu.control.value ? {mtu: Number(mtu.control.value)} : {}),
      members: ports.chosen().map(c => ({port: c.port.guid, ...j.value(c.membership)})),
    });
    start(body, form, ctx, [step], {title: `Make the partition ${text}`, partition: fresh});
  };
  const form = h('div', {class: 'panel'}, h('div', {class: 'columns'}, name, pkey, owner, sl, mtu), ipoib, j.box, ports, h('div', {class: 'actions'}, button('Show the plan', plan, {class: 'primary', 'data-do': 'plan'})));
  replace(body, form);
  if (draft.add) ports.choose(draft.add.map(g => named(ctx.ports, g).port).filter(Boolean));
}

// joining is the choice of the membership of those that are added.
function joining(draft) {
  const membership = select('Membership of those that are added', [['full', 'full: reaches every member'], ['limited', 'limited: reaches full members alone']], draft.membership || 'full');
  const index0 = tick('Put the key at index 0 of their tables');
  return {
    box: h('div', {class: 'row'}, membership, index0),
    value: own => ({membership: own || membership.control.value, ...(index0.control.checked ? {index0: true} : {})}),
  };
}

function owns(port) { return port.owner ? `of ${port.owner}` : 'of nobody'; }

// edit is the form of the members of a partition.
async function edit(body, ctx, partition, draft) {
  const list = await api.all(`/partitions/${partition.pkey}/members`);
  const e = {partition, list, changes: new Map(draft.changes || []), add: null};
  for (const g of draft.remove || []) e.changes.set(g, {remove: true});
  const j = joining(draft);
  const said = h('p', {role: 'status'});
  const summary = () => {
    const c = [...e.changes.values()];
    const added = ports.chosen().length, removed = c.filter(x => x.remove).length, changed = c.length - removed;
    replace(said, e.already || '', added + removed + changed ? `${added} to add, ${removed} to remove, ${changed} to change.` : 'Nothing is changed yet.');
  };
  const there = new Map(list.map(m => [m.port, m]));
  for (const g of e.changes.keys()) if (!there.has(g)) e.changes.delete(g); // somebody has removed it since
  const ports = picker(ctx.ports, {title: 'Add members', keep: p => !there.has(p.guid), refusal: 'it is a member already', note: owns, changed: summary});
  // A port that is a member and is to be one (a remedy makes it a full one) is changed.
  for (const g of draft.add || []) {
    const one = named(ctx.ports, g).port;
    if (one && !there.has(one.guid)) ports.choose([one]);
    else if (one && draft.membership && there.get(one.guid).membership !== draft.membership) e.changes.set(one.guid, {membership: draft.membership});
    else if (one) e.already = `${label(one)} is such a member already. `;
  }
  if (draft.chosen) ports.choose(draft.chosen);
  const plan = () => {
    const removed = [...e.changes].filter(([, c]) => c.remove).map(([g]) => g);
    const joined = ports.chosen().map(c => ({port: c.port.guid, ...j.value(c.membership)}));
    for (const [g, c] of e.changes) if (!c.remove) joined.push({port: g, membership: there.get(g).membership, index0: there.get(g).index0, ...c});
    if (!removed.length && !joined.length) {
      replace(said, 'Nothing is changed yet: choose ports to add, or change the members below.');
      return;
    }
    const next = {partition: partition.pkey, changes: [...e.changes], chosen: ports.chosen()};
    start(body, form, ctx, memberSteps(partition, joined, removed, list.etag), {title: `Change ${partition.name} (${partition.pkey})`, partition: partition.pkey, draft: next, why: draft.why});
  };
  const form = h('div', {class: 'panel'}, ports, j.box, memberTable(ctx, e, summary),
    h('div', {class: 'actions sticky'}, button('Show the plan', plan, {class: 'primary', 'data-do': 'plan'}), said));
  replace(body, form);
  summary();
}

// memberTable is the table of members, each with its membership to change and a box to
// remove it.
function memberTable(ctx, e, summary) {
  const port = m => ctx.ports.byGUID.get(m.port) || {guid: m.port};
  const change = (m, c) => {
    const next = {...e.changes.get(m.port), ...c};
    const same = !next.remove && (next.membership ?? m.membership) === m.membership && (next.index0 ?? Boolean(m.index0)) === Boolean(m.index0);
    if (same) e.changes.delete(m.port);
    else e.changes.set(m.port, next);
    summary();
  };
  const all = c => list => { for (const m of list) change(m, c); box.redraw(); };
  const choice = m => {
    const options = memberships.filter(x => x !== 'both' || m.membership === 'both');
    const s = h('select', {'aria-label': `Membership of ${label(port(m))}`, onchange: x => change(m, {membership: x.target.value})}, options.map(x => h('option', {value: x}, x)));
    s.value = (e.changes.get(m.port) || {}).membership || m.membership;
    return s;
  };
  const ticked = (m, text, now, f) => {
    const c = h('input', {type: 'checkbox', 'aria-label': `${text} ${label(port(m))}`, onchange: x => f(x.target.checked)});
    c.checked = now;
    return c;
  };
  const now = m => e.changes.get(m.port) || {};
  const box = table(`Members of ${e.partition.name} (${e.partition.pkey})`, [
    {title: 'End port', cell: m => label(port(m)), sort: m => label(port(m))},
    {title: 'GUID', cell: m => h('code', {}, m.port), sort: m => m.port},
    {title: 'Owner', cell: m => m.owner || '', sort: m => m.owner || ''},
    {title: 'State', cell: state},
    {title: 'Membership', cell: choice, text: m => now(m).membership || m.membership, sort: m => m.membership},
    {title: 'Index 0', text: () => '', cell: m => ticked(m, 'Key at index 0 of', now(m).index0 ?? Boolean(m.index0), on => change(m, {index0: on}))},
    {title: 'Remove', text: () => '', cell: m => ticked(m, 'Remove', Boolean(now(m).remove), on => change(m, {remove: on}))},
  ], e.list, {empty: 'It has no members yet.', onrow: (tr, m) => { tr.dataset.member = m.port; }, choose: {key: m => m.port, name: m => label(port(m)),
    actions: [['Remove', all({remove: true})], ['Do not remove', all({remove: false})], ['Make them full', all({membership: 'full'})], ['Make them limited', all({membership: 'limited'})]]}});
  return box;
}

// state says whether a member is one yet, and what is asked for.
export function state(m) {
  if (m.state === 'waiting') return mark('warn', `waits for ${m.waits_for}`);
  return [mark('good', 'member'), m.asked ? mark('warn', `${m.asked} is asked for, waits for ${m.waits_for}`) : null];
}

// start shows the plan of steps in the place of the form, and the form again where that is
// asked for.
/** @param {HTMLElement} body @param {HTMLElement} form @param {any} ctx @param {any[]} steps
 * @param {{title: string, why?: string, draft?: object, partition?: any}} about */
export function start(body, form, ctx, steps, {title, why, draft, partition}) {
  const f = flow(ctx.app, steps, {
    title, why: why || ctx.params.why, names: ctx.names, say: sayer(ctx.ports),
    back: () => (f.isConnected && f.dataset.flow === 'planned' ? replace(body, form) : ctx.again({partition})),
    again: () => ctx.again({partition, ...draft}),
  });
  replace(body, f);
}
