// Managers: which subnet managers there are, who is master, handing the subnet over, and
// switches that are drained.

import {button, count, dialog, facts, field, h, mark, notify, replace, settle, time} from '../dom.js';
import * as api from '../api.js';
import {choice, section, steady} from '../parts/controls.js';
import {drainsPart} from './managers-drains.js';

const readEvery = 5000; // ms
const unseen = 15; // s without an answer after which a manager is shown as silent

const states = {master: 'good', standby: 'plain', discovering: 'warn', 'not-active': 'warn', unknown: 'unknown'};
const trusts = {
  self: ['good', 'this one'], shared: ['good', 'shares the secret'], listed: ['good', 'listed by --trusted-sm'],
  none: ['bad', 'does not count'], unknown: ['unknown', 'unknown'],
};
const policies = {same: ['good', 'the same'], other: ['bad', 'another'], unknown: ['unknown', 'unknown']};

export default {name: 'managers', title: 'Managers', provider: true, render};

async function render(main, params, app) {
  const master = h('p', {class: 'verdict', role: 'status'});
  const list = h('div', {});
  const box = section('Subnet managers', 'managers', master, list);
  const drains = drainsPart(params, app);
  const handing = handover(app);
  replace(main, box, handing, drains);
  const read = async background => {
    const items = await api.all('/managers', {}, {background});
    show(master, list, items);
    handing.update(items);
  };
  const again = settle(() => read(true).catch(e => notify(e.message, 'bad')), 500);
  app.onEvent(e => { if (e.kind === 'manager') again(); if (e.kind === 'outcome') drains.read(true).catch(() => {}); });
  let first = true;
  await /** @type {Promise<void>} */ (new Promise((done, failed) => app.every(readEvery, async () => {
    try {
      await read(!first);
      first = false;
      done();
    } catch (e) {
      if (first) { first = false; failed(e); return; }
      throw e;
    }
  })));
  await drains.read(false);
}

function show(master, list, items) {
  const masters = items.filter(m => m.state === 'master');
  replace(master, masters.length === 1
    ? [mark('good', 'one master'), ' ', h('strong', {'data-master': masters[0].port}, masters[0].node), masters[0].self ? ', which answers here' : '']
    : masters.length === 0 ? mark('bad', 'no manager is master') : mark('bad', `${masters.length} managers are master`));
  steady(list, () => replace(list, items.map(card)));
}

function card(m) {
  const [trust, trustWord] = trusts[m.trust] || trusts.unknown;
  const [policy, policyWord] = policies[m.policy] || [];
  const silent = m.missed > 0 || m.last_seen && Date.now() - Date.parse(m.last_seen) > unseen * 1000 && !m.self;
  return h('article', {class: 'manager', 'data-manager': m.port, 'data-state': m.state},
    h('h3', {}, m.node || m.port, ' ', mark(states[m.state] || 'unknown', m.state), ' ', mark(trust, trustWord)),
    m.why ? h('p', {class: 'fault'}, m.why) : null,
    facts([
      ['Port', h('code', {}, m.port)], ['LID', m.lid], ['Rank (priority)', m.priority],
      ['Answered last', silent ? mark('warn', m.last_seen ? [time(m.last_seen), `, ${count(m.missed, 'request')} not answered since`] : 'never') : time(m.last_seen)],
      ['Acting', m.state === 'master' && !m.self ? m.acting ? 'yes' : mark('warn', 'no: it answers and does nothing') : undefined],
      ['End ports that name it', m.end_ports],
      ['Policy in force there', policyWord ? mark(policy, policyWord) : undefined],
      ['SM_Key in its answer', m.shows_sm_key ? ['shared', 'listed'].includes(m.trust) ? 'yes' : mark('warn', 'yes: it shows it to strangers') : 'no'],
      ['Proved revision', m.proved_revision], ['Epoch of the store', m.epoch], ['Store', m.store], ['Writes as', m.owner],
    ]));
}

// handover hands the subnet to a standby that is trusted, after saying to whom.
function handover(app) {
  let to = '';
  const place = h('p', {role: 'status', 'data-handover': ''});
  const why = field('Reason', h('input', {maxlength: '500', autocomplete: 'off'}), 'For the audit log.');
  const whom = h('div', {});
  const hand = async () => {
    replace(place);
    const trial = await api.write('POST', '/managers/handover', {to: to || undefined}, {dryRun: true});
    if (!await dialog('Hand the subnet over?', h('p', {}, `${trial.text}. This manager stands by afterwards.`), 'Hand over', {danger: true})) {
      replace(place, 'Nothing was handed over.');
      return;
    }
    const done = await api.write('POST', '/managers/handover', {to: trial.to.port}, {why: why.control.value.trim() || undefined});
    replace(place, mark(done.master ? 'good' : 'warn', done.text));
  };
  const form = h('div', {}, h('div', {class: 'row filters'}, whom, why),
    app.session.read_only ? h('p', {class: 'hint'}, 'You may read only.')
      : h('div', {class: 'actions'}, button('Hand over …', hand, {fail: e => replace(place, h('span', {class: 'fault'}, e.message))})));
  const elsewhere = h('p', {hidden: true}, 'This manager is not master, and has nothing to hand over: ask the service of the master.');
  const box = section('Hand the subnet over', 'handover',
    h('p', {class: 'hint'}, 'The master offers its place to a standby that is trusted, and stands by when that has taken it. It is asked first who that would be.'),
    form, elsewhere, place);
  let known = '';
  box.update = items => {
    const master = items.some(m => m.self && m.state === 'master');
    form.hidden = !master;
    elsewhere.hidden = master;
    const able = items.filter(m => !m.self && m.state === 'standby' && (m.trust === 'shared' || m.trust === 'listed'));
    const key = able.map(m => m.port).join(' ');
    if (known === key && whom.firstChild) return;
    known = key;
    if (!able.some(m => m.port === to)) to = '';
    replace(whom, choice('To', [['', able.length ? 'the one that ranks highest' : 'nobody: there is no standby that is trusted'], ...able.map(m => [m.port, `${m.node} (rank ${m.priority})`])], to, v => { to = v; }));
  };
  return box;
}
