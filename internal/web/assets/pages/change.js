// Change: members of partitions are added, changed and removed, ports are given to tenants and
// taken from them, and moved from one partition to another; with the plan before, and the
// verdict after. The hash says what is changed: #/change?partition=0x0100&add=GUID,GUID
// &remove=GUID&membership=full&why=TEXT, or task=give|take|move|offer with ports=GUID,GUID and tenant=NAME.

import {h, replace, toHash} from '../dom.js';
import * as api from '../api.js';
import {allPorts} from '../parts/portbox.js';
import {give, move, offer, take} from '../parts/handing.js';
import {members} from '../parts/members.js';

// Each task: its name in the hash, its title, who may (the provider, or tenants alone), and the form.
const tasks = [
  {name: 'members', title: 'Members of a partition', form: members},
  {name: 'move', title: 'Move ports', form: move},
  {name: 'offer', title: 'Offer ports', tenant: true, form: offer},
  {name: 'give', title: 'Give ports to a tenant', provider: true, form: give},
  {name: 'take', title: 'Take ports from tenants', provider: true, form: take},
];

async function render(main, params, app) {
  if (app.session.read_only) {
    replace(main, h('p', {}, 'This session can read and not write. The page shows how things are changed to those who may.'));
    return;
  }
  const may = tasks.filter(t => (app.provider ? !t.tenant : !t.provider));
  const task = may.find(t => t.name === params.task) || may[0];
  const nav = h('nav', {class: 'tasks', 'aria-label': 'What is changed'}, h('ul', {}, may.map(t => h('li', {}, h('a', {href: toHash('change', {task: t.name}), 'aria-current': t === task ? 'true' : null}, t.title)))));
  const place = h('div', {'data-task': task.name});
  replace(main, nav, place);
  await begin(place, task, params, app);
}

// begin reads how things are and shows the form; again does so once more, with the draft that
// the form hands over.
async function begin(place, task, params, app, draft) {
  const [ports, all, tenants] = await Promise.all([allPorts({again: Boolean(draft)}), api.all('/partitions'), api.all('/tenants')]);
  const partitions = all.filter(p => !p.file); // those of the policy file are changed there
  const names = new Map(all.map(p => [p.pkey, p.name]));
  const again = next => begin(place, task, params, app, next || {});
  await task.form(place, {app, params, ports, partitions, tenants, names, again, draft});
}

export default {name: 'change', title: 'Change', render};
