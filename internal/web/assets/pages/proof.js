// Proof and audit: the verdict with what it rests on, pairs of partitions, multicast groups,
// how the verdict changed, and what an audit finds.

import {button, count, facts, field, h, link, notify, remember, replace, settle, table, time, toHash, verdictMark} from '../dom.js';
import * as api from '../api.js';
import {choice, proved, revisionLink, section, steady, texts} from '../parts/controls.js';
import {auditPart} from './proof-audit.js';

// What each verdict means, in a sentence.
export const meanings = {
  isolated: 'Who can talk is within the policy, and stays within it when hosts forge their own tables.',
  'isolated-unguarded': 'Who can talk is within the policy. But a host could change that: a port takes management writes from strangers, or a cable between switches is on no list.',
  'isolated-by-end-ports': 'The table of every end port is right. But somewhere no switch would hold a host to its own table.',
  unknown: 'Something that the answer rests on was not read. What is not known is never taken for good.',
  violated: 'Two ports can talk that the policy keeps apart.',
};

const verdicts = ['isolated', 'isolated-unguarded', 'isolated-by-end-ports', 'unknown', 'violated'];
const pairsStep = 1000; // pairs that are read at once: the names of as many partitions stand in the first

const groupsMost = 5000; // multicast groups that are read

export default {name: 'proof', title: 'Proof and audit', render};

async function render(main, params, app) {
  const verdict = section('Verdict', 'verdict');
  const pairs = pairsPart(params);
  const groups = section('Multicast groups', 'groups');
  const past = section('How the verdict changed', 'past');
  const audit = app.provider ? auditPart(params) : null;
  const read = async background => {
    await Promise.all([
      readVerdict(verdict.body, background), pairs.read(background),
      app.provider ? readGroups(groups.body, background) : null, app.provider ? readPast(past.body, background) : null,
    ]);
  };
  const again = settle(() => read(true).catch(e => notify(e.message, 'bad')), 1000);
  app.onEvent(e => { if (e.kind !== 'revision') again(); });
  replace(main, verdict, pairs, app.provider ? [audit, groups, past] : null);
  await read(false);
  if (audit) audit.read().catch(e => audit.fault(e));
}

async function readVerdict(body, background) {
  const p = await api.item('/proof', {}, {background});
  const names = p.violations.length ? await portNames(background) : null;
  steady(body, () => replace(body,
    h('p', {class: 'verdict', 'data-verdict': p.verdict}, verdictMark(p.verdict)),
    h('p', {}, meanings[p.verdict] || ''),
    facts([
      ['How old it is', proved(p)],
      ['End ports', p.counts.end_ports || undefined], ['Partitions', p.counts.partitions],
      ['Pairs of partitions', p.counts.pairs], ['Violations', p.counts.violations],
      ['Pairs that hosts could join', p.counts.exposed || undefined], ['Not known', p.counts.unknown || undefined],
    ]),
    p.reasons.length ? [h('h3', {}, 'Why'), texts(p.reasons)] : null,
    p.caveats.length ? [h('h3', {}, 'What is left to hosts'), texts(p.caveats)] : null,
    p.violations.length ? violations(p, names) : null,
    p.shared_ports.length ? sharedPorts(p) : null));
}

// portNames is what the nodes of ports say of themselves, by GUID, as far as the caller sees
// them.
async function portNames(background) {
  const names = new Map();
  for (const p of await api.all('/ports', {found: true}, {background})) if (p.node) names.set(p.guid, p.node);
  return names;
}

function violations(p, names) {
  const end = g => g ? [names.get(g) || '', ' ', h('code', {}, g)] : 'a port of others';
  return table(`Ports that can talk and may not${p.counts.violations > p.violations.length ? `: ${p.violations.length} of ${p.counts.violations}` : ''}`, [
    {title: 'From', cell: v => end(v.from), sort: v => names.get(v.from) || v.from || ''},
    {title: 'To', cell: v => end(v.to), sort: v => names.get(v.to) || v.to || ''},
    {title: 'Over', cell: v => v.pkey ? h('code', {}, v.pkey) : '', sort: v => v.pkey || ''},
    {title: 'What stops packets today', cell: v => v.note || 'nothing'},
    {title: 'One packet', cell: v => v.from && v.to ? link(toHash('why', {from: v.from, to: v.to, pkey: v.pkey}), 'Why they can') : ''},
  ], p.violations);
}

function sharedPorts(p) {
  return table(`Ports that tenants share${p.counts.shared_ports > p.shared_ports.length ? `: ${p.shared_ports.length} of ${p.counts.shared_ports}` : ''}`, [
    {title: 'Port', cell: x => [x.name, ' ', h('code', {}, x.guid)], sort: x => x.name},
    {title: 'Partitions', cell: x => x.partitions.join(', '), sort: x => x.partitions.join(', ')},
    {title: 'Subnet manager', cell: x => x.manager ? 'yes' : ''},
  ], p.shared_ports);
}

// pairsPart is the pairs of partitions, by verdict and partition. What it shows is asked of
// the service, as there may be 100,000 pairs.
function pairsPart(params) {
  const set = {verdict: params.verdict || '', partition: params.partition || ''};
  const names = new Map(); // of partitions: P_Key by name
  const known = h('datalist', {id: 'pairs-partitions'});
  const list = table('Pairs of partitions', [
    {title: 'Partition', cell: p => [p.a, ' ', h('code', {}, p.pkey_a)], sort: p => p.a},
    {title: 'And', cell: p => p.pkey_b ? [p.b, ' ', h('code', {}, p.pkey_b)] : 'all others', sort: p => p.b},
    {title: 'Verdict', cell: p => verdictMark(p.verdict), sort: p => verdicts.indexOf(p.verdict)},
    {title: 'Why', cell: p => [p.joined ? 'The policy joins the two. ' : '', p.reason || '']},
  ], [], {hideCaption: true, empty: 'No such pair.', onrow: (tr, p) => { tr.dataset.pair = `${p.pkey_a}/${p.pkey_b || ''}`; tr.dataset.verdict = p.verdict; }});
  const note = h('p', {class: 'hint', role: 'status'});
  const more = button('Read more', async () => { most += pairsStep; await fill(false); });
  let most = pairsStep;
  const query = () => {
    const text = set.partition.trim();
    const pkey = /^0x[0-9a-f]{1,4}$/i.test(text) ? text : names.get(text);
    partition.fault(text && !pkey ? 'Want the name or the number of a partition, such as 0x0010.' : '');
    return text && !pkey ? null : {verdict: set.verdict, pkey};
  };
  const fill = async background => {
    const q = query();
    if (!q) return;
    const items = await api.all('/proof/pairs', q, {most, background});
    items.sort((a, b) => verdicts.indexOf(b.verdict) - verdicts.indexOf(a.verdict));
    steady(list, () => list.update(items));
    more.hidden = !items.more;
    replace(note, `${items.more ? 'More than ' : ''}${count(items.length, 'pair')}: ${verdicts.map(v => [items.filter(p => p.verdict === v).length, v]).filter(([n]) => n).map(([n, v]) => `${n} ${v}`).join(', ') || 'none'}${items.more ? ' of the first' : ''}. The worst come first.`);
  };
  const changed = settle(() => { most = pairsStep; fill(false).catch(e => partition.fault(e.message)); }, 200);
  const partition = field('Partition', h('input', {type: 'search', list: known.id, value: set.partition, autocomplete: 'off', maxlength: '80',
    oninput: e => { set.partition = e.target.value; remember('proof', {partition: set.partition}); changed(); }}), 'Name or number; empty for all.');
  const box = section('Pairs of partitions', 'pairs', h('div', {class: 'row filters'},
    choice('Verdict', [['', 'any'], ...verdicts.map(v => [v, v])], set.verdict, v => { set.verdict = v; remember('proof', {verdict: v}, true); changed(); }), partition, known), note, list, more);
  box.read = async background => {
    const first = await api.get('/proof/pairs', {limit: pairsStep}, {background});
    for (const p of first.items) for (const [name, pkey] of [[p.a, p.pkey_a], [p.b, p.pkey_b]]) if (pkey) names.set(name, pkey);
    replace(known, [...names].map(([name, pkey]) => h('option', {value: name}, pkey)));
    await fill(background);
  };
  return box;
}

async function readGroups(body, background) {
  const items = await api.all('/multicast-groups', {}, {most: groupsMost, background});
  steady(body, () => replace(body, table('Multicast groups, and how far the tables lead them', [
    {title: 'MLID', cell: g => h('code', {}, g.mlid), sort: g => g.mlid},
    {title: 'Verdict', cell: g => verdictMark(g.verdict), sort: g => verdicts.indexOf(g.verdict)},
    {title: 'End ports', number: true, cell: g => g.ports, sort: g => g.ports},
    {title: 'Within', cell: g => g.partitions.join(', ') || 'no partition'},
    {title: 'Why', cell: g => g.reason || ''},
  ], items, {hideCaption: true, empty: 'No multicast LID leads anywhere.'}), items.more ? h('p', {class: 'hint'}, 'There are more.') : null));
}

async function readPast(body, background) {
  const list = await api.all('/proof/history', {}, {most: 200, background});
  steady(body, () => replace(body, h('p', {class: 'hint'}, 'Since the service started; at most 1,000 changes are kept.'),
    table('Verdicts, the newest first', [
      {title: 'From', cell: c => time(c.at)},
      {title: 'Found last', cell: c => time(c.until)},
      {title: 'Verdict', cell: c => verdictMark(c.verdict)},
      {title: 'Policy of', cell: c => c.revision ? revisionLink(c.revision) : 'the start'},
      {title: 'Violations', number: true, cell: c => c.violations},
      {title: 'Why', cell: c => c.reasons.length ? texts(c.reasons, 2) : ''},
    ], list, {hideCaption: true, onrow: (tr, c) => { tr.dataset.verdict = c.verdict; }}),
    list.more ? h('p', {class: 'hint'}, 'The newest 200.') : null));
}
