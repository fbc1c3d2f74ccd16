// Changes that wait for a second person, and offers of ports: each is looked at as a plan, and approved or
// rejected; ports that are accepted go into a partition that is chosen.
//
// For tests: [data-approval] each with its ID; [data-do=approve] and [data-do=reject].

import {button, h, replace, table, time} from '../dom.js';
import * as api from '../api.js';
import {flow} from './flow.js';
import {select} from './members.js';
import {allPorts} from './portbox.js';
import {sayer} from './ports.js';

// approvals is a part of a page: {box, read()}; tenant keeps those of one. done is called when
// one was approved or rejected.
export async function approvals(app, done, tenant = '') {
  const place = h('div');
  const box = h('section', {class: 'panel', hidden: true, 'aria-label': 'Approvals'});
  const back = () => { replace(place); read(); };
  const look = async (a, verb, title, body) => {
    const [partitions, ports] = await Promise.all([api.all('/partitions'), allPorts()]);
    const what = a.from ? `what ${a.from} offers ${a.tenant}` : `what ${a.by} asked for: ${a.action}`;
    const f = flow(app, [{title: `${title} ${what}`, method: 'POST', path: `/approvals/${a.id}/${verb}`, body}], {
      title: `${title} ${a.from ? 'an offer of ports' : 'a change that waits'}`, names: new Map(partitions.map(p => [p.pkey, p.name])), say: sayer(ports), back, again: () => look(a, verb, title, body), done: () => { read(true); done(); },
    });
    replace(place, f);
  };
  // accept asks for the partition first.
  const accept = async a => {
    const partitions = (await api.all('/partitions')).filter(p => p.owner === a.tenant && !p.file);
    const into = select('Into the partition', [['', 'none'], ...partitions.map(p => [p.pkey, `${p.name} (${p.pkey})`])], '', 'The ports leave all others.');
    const membership = select('As', [['full', 'full members'], ['limited', 'limited members']], 'full');
    const body = () => (into.control.value ? {into: [{pkey: into.control.value, membership: membership.control.value}]} : undefined);
    replace(place, h('div', {class: 'panel'}, h('h2', {}, `Accept what ${a.from} offers`), h('div', {class: 'columns'}, into, membership),
      h('div', {class: 'actions'}, button('Show the plan', () => look(a, 'approve', 'Accept', body()), {class: 'primary', 'data-do': 'plan'}), button('Back', back, {'data-do': 'back'}))));
    into.control.focus();
  };
  const decide = a => {
    const own = a.from && !app.provider && a.from === app.session.tenant;
    const whose = a.from ? `the offer of ${a.from}` : `${a.action} of ${a.by}`;
    return h('div', {class: 'row'},
      own ? null : a.from ? button('Accept…', () => accept(a), {'data-do': 'approve', 'aria-label': `Accept ${whose}`}) : button('Approve…', () => look(a, 'approve', 'Approve'), {'data-do': 'approve', 'aria-label': `Approve ${whose}`}),
      button(own ? 'Withdraw…' : 'Reject…', () => look(a, 'reject', own ? 'Withdraw' : 'Reject'), {'data-do': 'reject', 'aria-label': `${own ? 'Withdraw' : 'Reject'} ${whose}`}));
  };
  const list = table('Changes that wait for a second person', [
    {title: 'What', cell: a => [a.action, h('ul', {class: 'words'}, a.words.map(w => h('li', {}, w)))]},
    {title: 'Tenant', cell: a => (a.from ? `${a.from} to ${a.tenant}` : a.tenant)},
    {title: 'Asked by', cell: a => a.by || a.from},
    {title: 'Why', cell: a => a.why || ''},
    {title: 'When', cell: a => time(a.at)},
    {title: 'Ends', cell: a => time(a.expires)},
    ...(app.session.read_only ? [] : [{title: 'Decision', cell: decide}]),
  ], [], {onrow: (tr, a) => { tr.dataset.approval = a.id; }});
  replace(box, list, place);
  async function read(keep = false) {
    const all = await api.all('/approvals', {}, {background: true});
    const mine = all.filter(a => !tenant || a.tenant === tenant || a.from === tenant);
    list.update(mine);
    box.hidden = !mine.length && !(keep && place.firstChild);
  }
  await read();
  return {box, read: () => read(true)};
}
