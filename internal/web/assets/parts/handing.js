// The forms that hand ports over: to a tenant, back from one, and from partition to partition.

import {button, field, h, remember, replace} from '../dom.js';
import * as api from '../api.js';
import {named} from './ports.js';
import {picker} from './picker.js';
import {select, start, tick} from './members.js';
import {giveSteps, memberSteps, moveSteps, offerStep, releaseStep} from './steps.js';

const addressMost = 100; // ports in the address: more are chosen again
const provider = 'provider'; // the tenant that ports belong to which nobody was given

function owns(ctx) {
  return port => [port.owner ? `of ${port.owner}` : 'of nobody', (port.partitions || []).map(k => ctx.names.get(k) || k).join(', ')].filter(Boolean).join(', in ');
}

// form puts a form in its place: fields, the picker, and a button that shows the plan of
// what steps() makes of it; what it lacks is said by throwing.
function form(place, ctx, {title, ports, fields, steps}) {
  const fault = h('p', {class: 'fault', role: 'alert'});
  const plan = async () => {
    replace(fault);
    let list;
    try {
      list = await steps();
    } catch (e) {
      if (e.status === 401) return;
      replace(fault, e.message);
      return;
    }
    if (!list.length) replace(fault, 'Nothing would change: it is so already.');
    else start(place, body, {...ctx, again: () => ctx.again({chosen: ports.chosen()})}, list, {title});
  };
  const body = h('div', {class: 'panel'}, ports, fields, fault, h('div', {class: 'actions sticky'}, button('Show the plan', plan, {class: 'primary', 'data-do': 'plan'})));
  replace(place, body);
  ports.onchosen = () => {
    const list = ports.chosen().map(c => c.port.guid);
    remember('change', {ports: list.length <= addressMost ? list.join(',') : ''});
  };
  if (ctx.draft && ctx.draft.chosen) ports.choose(ctx.draft.chosen.map(c => ({...c, port: ctx.ports.byGUID.get(c.port.guid) || c.port})));
  else ports.choose((ctx.params.ports || '').split(',').filter(Boolean).map(g => named(ctx.ports, g).port).filter(Boolean));
}

function chosenOf(ports) {
  const list = ports.chosen();
  if (!list.length) throw new Error('Choose ports first: by search, or by pasting a list.');
  return list;
}

const partitionName = p => `${p.name} (${p.pkey}), of ${p.owner}`;

// give gives ports to a tenant, and makes them members of one of its partitions if asked to.
export function give(place, ctx) {
  const ports = picker(ctx.ports, {title: 'Ports to give', note: owns(ctx)});
  const into = select('And make them members of', [['', 'no partition']], '', 'Of the partitions of the tenant.');
  const membership = select('As', [['full', 'full members'], ['limited', 'limited members']], 'full');
  const fill = name => replace(into.control, h('option', {value: ''}, 'no partition'), ctx.partitions.filter(p => p.owner === name).map(p => h('option', {value: p.pkey}, `${p.name} (${p.pkey})`)));
  const tenants = ctx.tenants.filter(t => t.name !== provider);
  const tenant = select('Tenant', [...tenants.map(t => [t.name, t.name]), [provider, 'the provider itself']], ctx.params.tenant || (tenants[0] || {}).name, null, () => { remember('change', {tenant: tenant.control.value}); fill(tenant.control.value); });
  fill(tenant.control.value);
  form(place, ctx, {
    title: 'Give ports to a tenant', ports, fields: h('div', {class: 'columns'}, tenant, into, membership),
    steps: async () => {
      const list = chosenOf(ports);
      const name = tenant.control.value;
      const partition = ctx.partitions.find(p => p.pkey === into.control.value);
      const as = new Map(list.map(c => [c.port.guid, c.membership || membership.control.value]));
      const steps = [];
      const own = list.filter(c => c.port.owner === name);
      if (partition && own.length) {
        const members = await api.all(`/partitions/${partition.pkey}/members`);
        steps.push(...memberSteps(partition, own.map(c => ({port: c.port.guid, membership: as.get(c.port.guid)})), [], members.etag));
      }
      steps.push(...giveSteps(name, list.map(c => c.port), partition, p => as.get(p.guid)));
      return steps;
    },
  });
}

// offer offers ports of the tenant to another, who answers on a page of its own.
export function offer(place, ctx) {
  const own = ctx.app.session.tenant;
  const ports = picker(ctx.ports, {title: 'Ports to offer', note: owns(ctx), keep: p => p.owner === own, refusal: 'it is not yours'});
  const tenant = field('To the tenant', h('input', {required: true, maxlength: '40', autocomplete: 'off', value: ctx.params.tenant || ''}), 'Its name, as it told you. It has 7 days to accept; until then nothing is changed, and you can withdraw the offer.');
  form(place, ctx, {
    title: 'Offer ports to another tenant', ports, fields: tenant,
    steps: () => {
      const list = chosenOf(ports);
      const name = tenant.control.value.trim();
      if (!name) throw new Error('Name the tenant.');
      return [offerStep(name, list.map(c => c.port))];
    },
  });
}

// take takes ports from their tenants, and out of all partitions.
export function take(place, ctx) {
  const ports = picker(ctx.ports, {title: 'Ports to take', note: owns(ctx), keep: p => p.owner && p.owner !== provider, refusal: 'it belongs to no tenant'});
  form(place, ctx, {
    title: 'Take ports from tenants', ports, fields: h('p', {class: 'hint'}, 'They leave all partitions, and belong to nobody until they are given to somebody.'),
    steps: () => [releaseStep(chosenOf(ports).map(c => c.port))],
  });
}

// move moves ports from partitions to another partition, and to its owner if that is to be.
export function move(place, ctx) {
  const leave = h('fieldset', {}, h('legend', {}, 'Partitions that they leave'));
  const ticks = new Map();
  const drawLeave = () => {
    const inside = new Set(ports.chosen().flatMap(c => c.port.partitions || []));
    inside.delete(target.control.value);
    for (const k of [...ticks.keys()]) if (!inside.has(k)) ticks.delete(k);
    for (const k of inside) if (!ticks.has(k)) ticks.set(k, tick(`${ctx.names.get(k) || k} (${k})`, true));
    replace(leave, h('legend', {}, 'Partitions that they leave'), ticks.size ? [...ticks.values()] : h('p', {class: 'hint'}, 'None of the chosen ports is in another partition.'));
  };
  const ports = picker(ctx.ports, {title: 'Ports to move', note: owns(ctx), keep: p => (p.partitions || []).length > 0 || ctx.app.provider, refusal: 'it is in no partition', changed: () => drawLeave()});
  const target = select('To the partition', ctx.partitions.map(p => [p.pkey, partitionName(p)]), ctx.params.partition, null, () => { remember('change', {partition: target.control.value}); drawOwner(); drawLeave(); });
  const membership = select('As', [['', 'what they were'], ['full', 'full members'], ['limited', 'limited members']], '');
  const owner = h('div');
  let handOver = null;
  const drawOwner = () => {
    const p = ctx.partitions.find(x => x.pkey === target.control.value);
    handOver = p && ctx.app.provider && p.owner !== provider ? tick(`Give them to ${p.owner}, whose partition it is: then they leave every partition of their owner`, false, {'data-do': 'handover'}) : null;
    replace(owner, handOver);
  };
  drawOwner();
  form(place, ctx, {
    title: 'Move ports', ports, fields: [h('div', {class: 'columns'}, target, membership), owner, leave],
    steps: async () => {
      const list = chosenOf(ports).map(c => c.port);
      const partition = ctx.partitions.find(p => p.pkey === target.control.value);
      if (!partition) throw new Error('There is no partition to move them to: make one first.');
      const left = [...ticks].filter(([, t]) => t.control.checked).map(([k]) => ctx.partitions.find(p => p.pkey === k)).filter(Boolean);
      const read = await Promise.all([...left, partition].map(p => api.all(`/partitions/${p.pkey}/members`)));
      const from = left.map((p, i) => ({partition: p, members: read[i], etag: read[i].etag}));
      const etag = read[read.length - 1].etag;
      return moveSteps(list, from, partition, {tenant: handOver && handOver.control.checked ? partition.owner : '', membership: membership.control.value, etag});
    },
  });
  drawLeave();
}
