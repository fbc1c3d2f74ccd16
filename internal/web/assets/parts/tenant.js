// One tenant's page: what it has and may have, its partitions with their members, ports,
// ranges of GUIDs, tokens, and changes that wait.
//
// For tests: [data-partition] each partition with its P_Key; its members as [data-member].

import {button, count, facts, h, link, mark, notify, replace, settle, table, toHash} from '../dom.js';
import * as api from '../api.js';
import {approvals} from './approvals.js';
import {steady} from './controls.js';
import {flow} from './flow.js';
import {state} from './members.js';
import {matrix} from './matrixview.js';
import {allPorts} from './portbox.js';
import {label, sayer} from './ports.js';
import {memberSteps} from './steps.js';
import {tenantForm} from './tenantform.js';
import {tokens} from './tokens.js';
import {changes, of} from '../pages/tenants.js';

const openAtOnce = 5; // partitions whose members are shown without being asked for
const rereadAfter = 400; // ms from an event to the next read

export function keysText(t) { return t.keys ? `${t.keys.first} to ${t.keys.last}` : t.name === 'provider' ? 'all others' : 'none'; }

export async function onePage(main, name, app, params = {}) {
  const p = {app, name, tenant: await api.item(`/tenants/${encodeURIComponent(name)}`), place: h('div'), summary: h('div'), partitions: h('div'), ports: h('div'), pools: h('div'), matrix: h('div')};
  const waiting = await approvals(app, () => read(p), name);
  const credentials = await tokens(app, name);
  const may = app.provider && !app.session.read_only;
  replace(main,
    app.provider ? h('p', {}, link('#/tenants', 'All tenants')) : null,
    h('h2', {}, `Tenant ${name}`),
    h('section', {class: 'panel'}, p.summary,
      may && name !== 'provider' ? h('details', {}, h('summary', {}, 'Change its P_Keys, quotas and rules'), tenantForm(app, p.tenant, () => onePage(main, name, app))) : null,
      may && name !== 'provider' ? button('Delete the tenant…', () => plan(p, [{title: `Delete the tenant ${name}, with its tokens`, method: 'DELETE', path: `/tenants/${encodeURIComponent(name)}`}], 'Delete a tenant'), {class: 'danger'}) : null),
    waiting.box, p.place, p.partitions, p.ports, p.pools, credentials.box, p.matrix);
  await read(p);
  const soon = settle(() => Promise.all([read(p), waiting.read()]).catch(e => { if (e.status !== 404) notify(e.message, 'bad'); }), rereadAfter);
  app.onEvent(e => { if (changes(e)) soon(); });
  return app.provider ? undefined : matrix(p.matrix, app, params);
}

async function read(p) {
  const quiet = {background: true};
  const [tenant, partitions, ports, pools] = await Promise.all([
    api.item(`/tenants/${encodeURIComponent(p.name)}`, {}, quiet), api.all('/partitions', {}, quiet), allPorts({again: true}), api.all('/pools', {}, quiet),
  ]);
  const tenantPorts = !p.app.provider ? ports.list : ports.more ? await api.all('/ports', {owner: p.name}, quiet) : ports.list.filter(x => x.owner === p.name);
  p.tenant = tenant;
  p.index = ports;
  p.names = new Map(partitions.map(x => [x.pkey, x.name]));
  const own = partitions.filter(x => x.owner === p.name);
  const others = p.app.provider ? [] : partitions.filter(x => x.owner !== p.name);
  const members = own.reduce((n, x) => n + x.members, 0);
  replace(p.summary, facts([
    ['P_Keys', keysText(tenant)], ['Partitions', of(tenant.partitions, tenant.quota.partitions)], ['Members of them', of(members, tenant.quota.members)], ['Ports', tenant.ports.toLocaleString('en')],
    ['Partitions of one port', tenant.quota.keys_per_port ? `at most ${tenant.quota.keys_per_port}` : 'no limit'], ['Changes a minute', tenant.quota.changes_per_minute ? `at most ${tenant.quota.changes_per_minute}` : 'no limit'],
    ['Removals', tenant.approve_removals ? 'wait for a second person' : 'are made at once'], ['Ports that were not seen', tenant.known_ports_only ? 'are refused' : 'may be given keys'],
  ]));
  if (differs(p, 'partitions', [own, others])) await drawPartitions(p, own, others);
  if (differs(p, 'ports', tenantPorts)) drawPorts(p, tenantPorts);
  const ranges = pools.filter(x => x.owner === p.name);
  if (differs(p, 'pools', ranges)) drawPools(p, ranges);
}

// hidden is a text for screen readers alone.
function hidden(text) { return h('span', {class: 'hidden'}, text); }

// differs reports whether what is shown under a name is not what was shown before: what is
// drawn again loses the focus, so what is the same stays.
export function differs(holder, name, value) {
  holder.shown = holder.shown || {};
  const text = JSON.stringify(value);
  const same = holder.shown[name] === text;
  holder.shown[name] = text;
  return !same;
}

// plan shows the plan of a change in its place on the page.
function plan(p, steps, title) {
  const f = flow(p.app, steps, {
    title, names: p.names, say: p.index ? sayer(p.index) : undefined, back: () => replace(p.place), again: () => plan(p, steps, title),
    done: () => (steps[0].path.startsWith('/tenants/') ? undefined : read(p)),
  });
  replace(p.place, f);
}

async function drawPartitions(p, own, others) {
  const write = !p.app.session.read_only;
  const shown = [...own, ...others];
  // What was opened stays open when the page is read again.
  const open = new Map([...p.partitions.querySelectorAll('[data-partition]')].map(d => [d.dataset.partition, d.open]));
  const boxes = await Promise.all(shown.map(async (x, i) => {
    const place = h('div');
    const load = async () => {
      if (place.firstChild) return;
      place.append(memberTable(p, x, await api.all(`/partitions/${x.pkey}/members`, {}, {background: true})));
    };
    const wanted = open.has(x.pkey) ? open.get(x.pkey) : i < openAtOnce;
    if (wanted) await load();
    return h('details', {open: wanted, 'data-partition': x.pkey, ontoggle: e => { if (e.target.open) load().catch(error => replace(place, h('p', {class: 'fault'}, error.message))); }},
      h('summary', {}, h('strong', {}, x.name), ` ${x.pkey}, ${count(x.members, 'member')}`, x.owner !== p.name ? `, of ${x.owner}` : '', ' ', x.waiting ? mark('warn', `${x.waiting} wait`) : null),
      x.file ? h('p', {}, `Of the policy file ${x.file}: it is changed there.`) : null,
      facts([['Service level', x.sl], ['MTU', x.mtu ? `${x.mtu} bytes` : 'the default'], ['Rate', x.rate ? `${x.rate} Gb/s` : 'what links carry'], ['IP over InfiniBand', x.ip_over_ib ? 'yes' : 'no']]),
      write && !x.file ? h('p', {class: 'row'}, link(toHash('change', {partition: x.pkey}), 'Change its members'),
        x.owner === p.name || p.app.provider ? button(['Delete it…', hidden(` partition ${x.name}`)], () => plan(p, [{title: `Delete ${x.name} (${x.pkey}) with its members`, method: 'DELETE', path: `/partitions/${x.pkey}`, ifMatch: `"${x.changed}"`, about: `/partitions/${x.pkey}`}], 'Delete a partition'), {class: 'danger', 'data-do': 'delete'}) : null) : null,
      place);
  }));
  replace(p.partitions, h('section', {class: 'panel'}, h('h2', {}, 'Partitions'),
    boxes.length ? boxes : h('p', {class: 'empty'}, 'None.'),
    write ? h('p', {}, link(toHash('change', {partition: 'new', owner: p.name}), 'Make a partition')) : null));
}

function memberTable(p, partition, list) {
  const name = m => label(p.index.byGUID.get(m.port) || {guid: m.port});
  const mine = m => !p.app.session.read_only && m.waits_for && (m.waits_for === p.app.session.tenant || p.app.provider && m.waits_for === 'provider');
  // What many are asked is agreed to in one change.
  const agree = ms => plan(p, memberSteps(partition, ms.map(m => ({port: m.port, membership: m.asked || m.membership, index0: m.index0})), [], list.etag), 'Answer what was asked for');
  const decide = (m, verb) => plan(p, [verb === 'agree'
    ? {title: `Agree that ${name(m)} is a ${m.asked || m.membership} member of ${partition.name}`, method: 'PUT', path: `/partitions/${partition.pkey}/members/${m.port}`, body: {membership: m.asked || m.membership, ...(m.index0 ? {index0: true} : {})}, ifMatch: list.etag, about: `/partitions/${partition.pkey}/members`}
    : {title: `Decline that ${name(m)} is a member of ${partition.name}`, method: 'POST', path: `/partitions/${partition.pkey}/members/${m.port}/refuse`}], 'Answer what was asked for');
  return table(`Members of ${partition.name}`, [
    {title: 'End port', cell: name, sort: name},
    {title: 'GUID', cell: m => h('code', {}, m.port), sort: m => m.port},
    {title: 'Membership', cell: m => [m.membership, m.index0 ? ', at index 0' : ''], sort: m => m.membership},
    {title: 'Owner', cell: m => m.owner || ''},
    {title: 'State', cell: state},
    ...(list.some(mine) ? [{title: 'Answer', cell: m => (mine(m) ? h('div', {class: 'row'}, button(['Agree…', hidden(` ${name(m)}`)], () => decide(m, 'agree'), {'data-do': 'agree'}), button(['Decline…', hidden(` ${name(m)}`)], () => decide(m, 'refuse'), {'data-do': 'decline'})) : '')}] : []),
  ], list, {hideCaption: true, onrow: (tr, m) => { tr.dataset.member = m.port; }, choose: list.some(mine) ? {key: m => m.port, name, actions: [['Agree…', ms => agree(ms.filter(mine))]]} : null});
}

function drawPorts(p, list) {
  if (p.portTable) { // where rows may be chosen
    steady(p.ports, () => p.portTable.update(list));
    return;
  }
  const names = k => link(toHash('change', {partition: k}), k);
  const write = p.app.provider && !p.app.session.read_only;
  /** @returns {[string, (rows: any[]) => void]} */
  const task = (name, title) => [title, xs => p.app.go('change', {task: name, ports: xs.map(x => x.guid).join(',')})];
  p.portTable = table(`Ports${list.more ? ' (the first 20,000)' : ''}`, [
    {title: 'End port', cell: x => (x.node_guid ? link(toHash('fabric', {node: x.node_guid}), label(p.index.byGUID.get(x.guid) || x)) : x.guid), sort: x => x.node || x.guid},
    {title: 'GUID', cell: x => h('code', {}, x.guid), sort: x => x.guid},
    {title: 'LID', cell: x => x.lid || '', number: true, sort: x => x.lid || 0},
    {title: 'Found', cell: x => (x.found ? mark('good', x.state || 'found') : mark('unknown', 'not found')), sort: x => String(x.found)},
    {title: 'Place', cell: x => (x.bound ? `only at port ${x.bound.port} of ${x.bound.switch}` : '')},
    {title: 'Partitions', cell: x => x.partitions.map((k, i) => [i ? ', ' : '', p.app.session.read_only ? k : names(k)])},
    {title: 'Reach', cell: x => (x.found ? link(toHash('why', {from: x.guid}), 'whom it talks with', h('span', {class: 'hidden'}, `: ${x.node || x.guid}`)) : '')},
  ], list, {empty: 'It has no ports yet.', choose: p.app.session.read_only ? null : {key: x => x.guid, name: x => x.node || x.guid,
    actions: [task('move', 'Move…'), ...p.app.provider ? [task('give', 'Give…'), task('take', 'Take…')] : [task('offer', 'Offer…')]]}});
  replace(p.ports, h('section', {class: 'panel'}, p.portTable,
    write ? h('p', {class: 'row'}, link(toHash('change', {task: 'give', tenant: p.name}), 'Give it ports'), link(toHash('change', {task: 'take'}), 'Take ports from it')) : null));
}

function drawPools(p, list) {
  if (!list.length) {
    replace(p.pools);
    return;
  }
  replace(p.pools, h('section', {class: 'panel'}, table('Ranges of GUIDs, for virtual functions', [
    {title: 'First', cell: x => h('code', {}, x.first)},
    {title: 'Last', cell: x => h('code', {}, x.last)},
    ...(p.app.provider && !p.app.session.read_only ? [{title: 'Take it', cell: x => button(['Take it…', hidden(` range from ${x.first}`)], () => plan(p, [{title: `Take the range ${x.first} to ${x.last} from ${x.owner}`, method: 'DELETE', path: `/pools/${x.first}`}], 'Take a range of GUIDs'), {class: 'danger'})}] : []),
  ], list)));
}
