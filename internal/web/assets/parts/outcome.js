// What a write would do, and what became of it: for pages that change something.

import {facts, h, link, replace, toHash} from '../dom.js';
import * as api from '../api.js';
import {outcomeMark, revisionLink, seconds, texts} from './controls.js';

const askEvery = 1000; // ms between two looks at an outcome that is pending

// tried shows the plan of a dry run.
export function tried(changed) {
  const p = changed.plan;
  if (!p) return h('p', {class: 'hint'}, 'There is no plan: the fabric was not read yet.');
  if (!p.changes) return h('p', {'data-plan': 'none'}, 'Nothing would be written to the fabric.');
  return h('div', {'data-plan': 'some'}, facts([
    ['Pairs of ports that come to talk', p.gained], ['Pairs that cease to talk', p.lost],
    ['Ports whose keys change', p.ports], ['Requests that write', p.set],
    ['Places that could not be read', p.unread || undefined],
  ]), p.text ? h('details', {}, h('summary', {}, 'The plan, port by port'), h('pre', {class: 'plan', tabindex: '0', 'aria-label': 'Plan'}, p.text)) : null);
}

// follow shows what became of a change until it is proved, or not.
export function follow(changed, app) {
  const place = h('div', {role: 'status', 'data-follow': changed.revision});
  const show = outcome => replace(place,
    h('p', {}, revisionLink(changed.revision), ': ', outcomeMark(outcome), outcome && outcome.seconds ? ` after ${seconds(outcome.seconds)}` : ''),
    outcome && outcome.reasons ? texts(outcome.reasons) : null,
    changed.words && changed.words.length ? texts(changed.words, 20) : null);
  if (changed.approval) {
    return replace(place, h('p', {}, `It waits for a second person, as the approval ${changed.approval}. Nothing else was changed. `, link(toHash('tenants'), 'Changes that wait')));
  }
  if (!changed.follow) return replace(place, h('p', {}, changed.words && changed.words.length ? changed.words.join('; ') : 'Nothing was to change.'));
  show(changed.outcome || {state: 'pending'});
  const ask = async () => {
    const r = await api.item(`/revisions/${changed.revision}`, {}, {background: true});
    show(r.outcome);
    if (r.outcome && r.outcome.state === 'pending' && place.isConnected) setTimeout(() => ask().catch(() => {}), askEvery);
  };
  app.onEvent(e => { if (e.revision === changed.revision && e.outcome) show(e.outcome); });
  setTimeout(() => ask().catch(() => {}), askEvery);
  return place;
}
