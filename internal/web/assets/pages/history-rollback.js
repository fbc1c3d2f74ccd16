// Bringing partitions, members, the policy file, and owners of ports back to how they were at a revision: tried
// first, with its plan, and then done with a reason.

import {button, dialog, field, h, link, replace, toHash} from '../dom.js';
import * as api from '../api.js';
import {tick} from '../parts/members.js';
import {planView} from '../parts/planview.js';
import {choice, portSayer, section} from '../parts/controls.js';
import {follow} from '../parts/outcome.js';

// rollback is the form; to is the revision.
export async function rollback(main, to, app) {
  if (app.session.read_only) {
    replace(main, h('p', {}, 'This session can read and not write: it rolls nothing back.'), h('p', {class: 'actions'}, link(toHash('history'), 'All changes')));
    return;
  }
  const [tenants, partitions, say] = await Promise.all([app.provider ? api.all('/tenants') : [], api.all('/partitions'), portSayer()]);
  const names = new Map(partitions.map(p => [p.pkey, p.name]));
  let tenant = '';
  const number = field('Back to revision', h('input', {type: 'number', min: '1', required: true, value: to || ''}), `Partitions${app.provider ? ', members and the policy file' : ' and members'} are brought back to how they were right after it. Tenants and tokens stay.`);
  const owners = app.provider ? tick('Give ports back to the tenants that they belonged to (of all tenants)', false, {'data-do': 'owners'}) : null;
  const why = field('Reason', h('input', {maxlength: '500', autocomplete: 'off'}), 'For the history.');
  const place = h('div', {});
  const body = () => ({to: Number(number.control.value), tenant: tenant || undefined, owners: owners && owners.control.checked || undefined});
  const attempt = async () => {
    number.fault('');
    why.fault('');
    replace(place);
    const n = Number(number.control.value);
    if (!Number.isInteger(n) || n < 1) { number.fault('Want the number of a revision, from 1.'); number.control.focus(); return; }
    let plan;
    try {
      plan = await api.write('POST', '/rollback', body(), {dryRun: true});
    } catch (e) {
      number.fault(e.message);
      return;
    }
    replace(place, h('h3', {}, 'The plan'),
      plan.words && plan.words.length ? [planView(plan, names, say), act(plan, n)] : h('p', {role: 'status'}, 'Nothing: all is as it was then.'));
  };
  const act = (plan, n) => button(`Roll back to revision ${n}`, async () => {
    if (!why.control.value.trim()) { why.fault('Want a reason: others will read it in the history.'); why.control.focus(); return; }
    if (!await dialog(`Roll back to revision ${n}?`, h('p', {}, 'What changes is said on the page. It becomes a revision of its own, which can be rolled back too.'), 'Roll back', {danger: true})) return;
    const repeat = api.repeatKey();
    const done = await api.write('POST', '/rollback', body(), {why: why.control.value.trim(), ifMatch: `"${plan.revision}"`, repeat});
    replace(place, follow(done, app));
  }, {class: 'danger', fail: e => { why.fault(e.status === 412 ? 'Something was changed meanwhile: try it again first.' : e.message); }});
  replace(main, h('p', {class: 'actions'}, link(toHash('history'), 'All changes')),
    section('Roll back', 'rollback', h('form', {onsubmit: e => { e.preventDefault(); attempt(); }},
      h('div', {class: 'row filters'}, number,
        app.provider ? choice('Whose part', [['', 'all'], ...tenants.map(t => [t.name, t.name])], '', v => { tenant = v; }) : null, why), owners,
      h('div', {class: 'actions'}, h('button', {type: 'submit', class: 'primary'}, 'Try it'))), place));
  if (to) await attempt();
}
