// Changes that wait for a second person: each is looked at as a plan, and approved or rejected.
//
// For tests: [data-approval] each with its ID; [data-do=approve] and [data-do=reject].

import {button, h, replace, table, time} from '../dom.js';
import * as api from '../api.js';
import {flow} from './flow.js';
import {allPorts} from './portbox.js';
import {sayer} from './ports.js';

// approvals is a part of a page: {box, read()}; tenant keeps those of one. done is called when
// one was approved or rejected.
export async function approvals(app, done, tenant = '') {
  const place = h('div');
  const box = h('section', {class: 'panel', hidden: true, 'aria-label': 'Changes that wait for a second person'});
  const look = async (a, verb, title) => {
    const [partitions, ports] = await Promise.all([api.all('/partitions'), allPorts()]);
    const f = flow(app, [{title: `${title} what ${a.by} asked for: ${a.action}`, method: 'POST', path: `/approvals/${a.id}/${verb}`}], {
      title: `${title} a change that waits`, names: new Map(partitions.map(p => [p.pkey, p.name])), say: sayer(ports), back: () => { replace(place); read(); }, again: () => look(a, verb, title), done: () => { read(true); done(); },
    });
    replace(place, f);
  };
  const list = table('Changes that wait for a second person', [
    {title: 'What', cell: a => [a.action, h('ul', {class: 'words'}, a.words.map(w => h('li', {}, w)))]},
    {title: 'Tenant', cell: a => a.tenant},
    {title: 'Asked by', cell: a => a.by},
    {title: 'Why', cell: a => a.why || ''},
    {title: 'When', cell: a => time(a.at)},
    {title: 'Ends', cell: a => time(a.expires)},
    ...(app.session.read_only ? [] : [{title: 'Decision', cell: a => h('div', {class: 'row'},
      button('Approve…', () => look(a, 'approve', 'Approve'), {'data-do': 'approve', 'aria-label': `Approve ${a.action} of ${a.by}`}),
      button('Reject…', () => look(a, 'reject', 'Reject'), {'data-do': 'reject', 'aria-label': `Reject ${a.action} of ${a.by}`}))}]),
  ], [], {onrow: (tr, a) => { tr.dataset.approval = a.id; }});
  replace(box, list, place);
  async function read(keep = false) {
    const all = await api.all('/approvals', {}, {background: true});
    const mine = all.filter(a => !tenant || a.tenant === tenant);
    list.update(mine);
    box.hidden = !mine.length && !(keep && place.firstChild);
  }
  await read();
  return {box, read: () => read(true)};
}
