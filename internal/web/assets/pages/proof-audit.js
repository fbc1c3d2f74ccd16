// What an audit of the fabric finds, by check.

import {button, count, h, mark, remember, replace, table} from '../dom.js';
import * as api from '../api.js';
import {choice, section} from '../parts/controls.js';

const severities = ['critical', 'high', 'medium', 'low', 'unknown'];
const kinds = {critical: 'bad', high: 'bad', medium: 'warn', low: 'plain', unknown: 'unknown'};
const findingsMost = 5000; // that are read
const placesWhole = 10; // of a check that are drawn whole

// auditPart is the part of the page; read fills it.
export function auditPart(params) {
  const set = {profile: params.profile || 'basic', severity: params.severity || '', read: false};
  const doing = h('p', {class: 'hint', role: 'status'});
  const body = h('div', {});
  let last = 0; // the audit that was asked for last: only that one is shown
  const read = async () => {
    const mine = ++last;
    replace(doing, set.read ? 'What only an audit looks at is read from the devices …' : 'The fabric is held against the catalogue …');
    const query = {profile: set.profile, read: set.read ? 'true' : undefined};
    try {
      const checks = await api.all('/audit/checks', query); // first, as its audit serves the findings too
      const findings = await api.all('/audit', {...query, severity: set.severity}, {most: findingsMost});
      if (mine === last) show(body, findings, checks, set);
    } finally {
      if (mine === last) replace(doing);
    }
  };
  const box = section('Audit', 'audit', h('div', {class: 'row filters'},
    choice('Profile', [['basic', 'basic'], ['tenant', 'tenant: hosts whose root is not trusted'], ['strict', 'strict']], set.profile, v => { set.profile = v; remember('proof', {profile: v}, true); read().catch(box.fault); }),
    choice('Severity', [['', 'any'], ...severities.map(s => [s, s])], set.severity, v => { set.severity = v; remember('proof', {severity: v}, true); read().catch(box.fault); }),
    button('Audit again', read, {fail: e => box.fault(e)}),
    button('Read what is unknown, and audit', () => { set.read = true; return read(); }, {fail: e => box.fault(e)})), doing, body);
  box.read = read;
  box.fault = e => replace(body, h('p', {class: 'fault', role: 'alert'}, e.message));
  return box;
}

function show(body, findings, checks, set) {
  const by = new Map();
  for (const f of findings) {
    const key = `${f.number}/${f.severity}`;
    if (!by.has(key)) by.set(key, []);
    by.get(key).push(f);
  }
  const titles = new Map(checks.map(c => [c.number, c.title]));
  const rank = f => severities.indexOf(f.severity);
  const groups = [...by.values()].sort((a, b) => rank(a[0]) - rank(b[0]) || a[0].number - b[0].number);
  const became = name => checks.filter(c => c.outcome === name);
  replace(body,
    h('p', {role: 'status', 'data-audit': 'counts'},
      `${count(checks.length, 'check')}: ${became('passed').length} found nothing, ${became('found').length} found something, ${became('not-checkable').length} cannot be made here, ${became('stricter').length} only with a stricter profile.`),
    groups.length ? null : h('p', {}, set.severity ? `Nothing of severity ${set.severity} is found.` : mark('good', 'Nothing is found.')),
    groups.map(list => finding(list, titles)),
    findings.more ? h('p', {class: 'hint'}, `The first ${findingsMost} places; ibwarden audit has all.`) : null,
    others('Checks that cannot be made here', became('not-checkable')), others('Checks that found nothing', became('passed')));
}

function finding(list, titles) {
  const f = list[0];
  return h('details', {class: 'finding', 'data-check': f.check, 'data-severity': f.severity},
    h('summary', {}, mark(kinds[f.severity], f.severity), ' ', titles.get(f.number) || f.check, ' ', h('span', {class: 'hint'}, `${f.check} (${f.number}): ${count(list.length, 'place')}`)),
    h('p', {}, h('strong', {}, 'What to do: '), f.advice),
    table(`Places: ${f.check}`, [{title: 'Where', cell: x => x.where, sort: x => x.where}, {title: 'What was read', cell: x => x.read, sort: x => x.read}], list, {hideCaption: true, whole: placesWhole}));
}

function others(title, checks) {
  if (!checks.length) return null;
  return h('details', {class: 'finding'}, h('summary', {}, `${title} (${checks.length})`),
    h('ul', {class: 'texts'}, checks.map(c => h('li', {}, `${c.title}, ${c.check} (${c.number})${c.reason ? `: ${c.reason}` : ''}`))));
}
