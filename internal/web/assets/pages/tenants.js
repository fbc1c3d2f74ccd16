// Tenants: what each has and may have, the matrix of who can talk with whom, and changes that
// wait for a second person. #/tenants?name=red is one tenant's page.
//
// For tests: [data-tenant] each row; [data-do=create] the form of a new tenant; the matrix and
// approvals as parts/matrixview.js and parts/approvals.js say.

import {h, link, mark, notify, replace, settle, table, toHash} from '../dom.js';
import * as api from '../api.js';
import {approvals} from '../parts/approvals.js';
import {matrix} from '../parts/matrixview.js';
import {tenantForm} from '../parts/tenantform.js';
import {differs, keysText, onePage} from '../parts/tenant.js';

const rereadAfter = 400; // ms from an event to the next read

// changes reports whether an event may have changed what the page shows.
export function changes(event) { return event.kind !== 'manager'; }

async function render(main, params, app) {
  const name = app.provider ? params.name : params.name || app.session.tenant;
  if (name) return onePage(main, name, app, params);
  return listPage(main, app, params);
}

async function listPage(main, app, params) {
  const list = table('Tenants', [
    {title: 'Tenant', cell: t => link(toHash('tenants', {name: t.name}), t.name), sort: t => t.name},
    {title: 'P_Keys', cell: keysText, sort: keysText},
    {title: 'Partitions', cell: t => of(t.partitions, t.quota.partitions), number: true, sort: t => t.partitions},
    {title: 'Ports', cell: t => t.ports.toLocaleString('en'), number: true, sort: t => t.ports},
    {title: 'Members', cell: t => of(t.members, t.quota.members), number: true, sort: t => t.members},
    {title: 'Partitions of a port', cell: t => bound(t.quota.keys_per_port), number: true, sort: t => t.quota.keys_per_port || 0},
    {title: 'Changes a minute', cell: t => bound(t.quota.changes_per_minute), number: true, sort: t => t.quota.changes_per_minute || 0},
    {title: 'Removals', cell: t => (t.approve_removals ? 'a second person approves' : 'at once')},
  ], [], {empty: 'There are no tenants yet.', onrow: (tr, t) => { tr.dataset.tenant = t.name; }});
  const waiting = await approvals(app, () => read());
  const place = h('div');
  const create = app.session.read_only ? null : h('details', {class: 'panel', 'data-do': 'create'}, h('summary', {}, 'Create a tenant'), tenantForm(app, null, made => app.go('tenants', {name: made})));
  async function read() {
    const [tenants, partitions] = await Promise.all([api.all('/tenants', {}, {background: true}), api.all('/partitions', {}, {background: true})]);
    const members = new Map();
    for (const p of partitions) members.set(p.owner, (members.get(p.owner) || 0) + p.members);
    const rows = tenants.map(t => ({...t, members: members.get(t.name) || 0}));
    if (differs(list, 'rows', rows)) list.update(rows);
  }
  await read();
  replace(main, h('section', {class: 'panel'}, list), create, waiting.box, place);
  const soon = settle(() => Promise.all([read(), waiting.read()]).catch(e => notify(e.message, 'bad')), rereadAfter);
  app.onEvent(event => { if (changes(event)) soon(); });
  return matrix(place, app, params);
}

// of is how much of a quota is used: full is said, not only coloured.
export function of(n, most) {
  if (!most) return n.toLocaleString('en');
  const text = `${n.toLocaleString('en')} of ${most.toLocaleString('en')}`;
  return n >= most ? mark('warn', `${text}, full`) : text;
}

function bound(n) { return n ? n.toLocaleString('en') : 'no limit'; }

export default {name: 'tenants', title: 'Tenants', render};
