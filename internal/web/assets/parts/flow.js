// A change from its plan to the verdict: the steps are planned (dry run), shown, sent one after
// the other with the reason, and followed until each is proved on the fabric. It can be
// stopped between two steps, taken up again, and undone.
//
// For tests: [data-flow] is planning, planned, running, stopped, done, failed or stale;
// [data-step] each step with its state in data-state: planned, later, sending, pending,
// proved, nothing, failed, refused or approval. Buttons: [data-do=apply], stop, undo, again, back.

import {button, field, h, link, mark, replace, toHash, verdictMark} from '../dom.js';
import * as api from '../api.js';
import {matchOf, undoSteps} from './steps.js';
import {planView, words} from './planview.js';

const askedEvery = 700; // ms between two looks at an outcome, beside events
const whyMost = 500; // characters of a reason
const slow = 15000; // ms after which a verdict is said to take long

const states = {
  planned: ['plain', 'planned'], later: ['plain', 'is planned, and shown if it lets ports talk, when the steps before it are made'], sending: ['plain', 'being stored'],
  pending: ['plain', 'stored, being written to the fabric and proved'], proved: ['good', 'proved on the fabric'],
  failed: ['bad', 'written, and not proved'], refused: ['bad', 'refused: nothing was written'],
  nothing: ['plain', 'is so already: nothing was changed'], approval: ['warn', 'waits for an approval'],
};

// flow shows steps and makes them. options: title; why, the reason that stands in its field;
// names, of partitions by P_Key; say(text), which puts names beside GUIDs; again() makes the change again from what is read again; back()
// goes back to the form; done() is called after the last step, whatever became of it.
export function flow(app, steps, options) {
  const f = {
    app, options, made: [],
    steps: steps.map(step => ({step, key: api.repeatKey(), state: 'planned', place: h('div'), head: h('span', {class: 'state'})})),
    box: h('section', {class: 'panel flow', 'aria-label': options.title, tabindex: '-1', 'data-flow': 'planning'}),
    status: h('p', {role: 'status', class: 'progress'}), fault: h('div', {role: 'alert'}), actions: h('div', {class: 'actions'}), stop: false, hint: h('p', {class: 'hint'}, 'Nothing is changed before you apply it.'),
  };
  f.why = field('Why', h('input', {type: 'text', maxlength: String(whyMost), value: options.why || ''}), 'The reason, for the history.');
  replace(f.box, h('h2', {}, options.title), f.hint,
    h('ol', {class: 'steps'}, f.steps.map(stepItem)),
    f.fault, f.why, f.actions, f.status);
  planAll(f);
  return f.box;
}

function stepItem(s) {
  const item = h('li', {'data-step': true}, h('h3', {}, s.step.title, ' ', s.head), s.place);
  s.mark = state => {
    s.state = item.dataset.state = state;
    replace(s.head, mark(...states[state]));
  };
  s.mark('planned');
  return item;
}

function enter(f, state) { f.box.dataset.flow = state; }

// planAll plans the steps one after the other. What the one before it makes possible (ports
// that the tenant does not have yet) is planned when that is made; any other step that the
// service refuses ends the plan, before anything is changed.
async function planAll(f) {
  replace(f.status, 'The plan is being made…');
  try {
    for (const s of f.steps) {
      if (!s.step.after) await plan(f, s);
      else s.mark('later');
    }
  } catch (e) {
    if (e.status === 401) return;
    failed(f, e);
    return;
  }
  replace(f.status, '');
  enter(f, 'planned');
  buttons(f);
  f.box.focus({preventScroll: true});
  f.box.scrollIntoView({block: 'start'});
}

// again plans a step that the steps before it had to make possible; the ETag of what it changes
// is read again. It answers whether somebody has to look at the plan before it is made: where
// ports come to talk, or there is something to know before.
async function again(f, s) {
  if (s.step.ifMatch && !s.step.every) s.step = {...s.step, ifMatch: (await api.get(s.step.about, {limit: 1})).etag, own: true};
  const answer = await plan(f, s);
  const document = answer.plan && answer.plan.document;
  return Boolean(answer.plan && answer.plan.gained || document && document.findings && document.findings.length);
}

async function plan(f, s) {
  const {method, path, body, query, ifNoneMatch} = s.step;
  const answer = await api.write(method, path, body, {query, dryRun: true, ifMatch: matchOf(s.step, f.made), ifNoneMatch});
  replace(s.place, planView(answer, f.options.names, f.options.say));
  s.mark('planned');
  return answer;
}

function buttons(f) {
  const left = f.steps.filter(s => !finished(s));
  const go = h('button', {type: 'button', class: 'primary', 'data-do': 'apply', onclick: () => run(f)}, f.made.length ? 'Continue' : f.steps.length > 1 ? `Apply the ${f.steps.length} steps` : 'Apply');
  replace(f.actions, left.length && !f.app.session.read_only ? go : null,
    f.made.length ? undoButton(f) : null,
    f.options.back ? button('Back', f.options.back, {'data-do': 'back'}) : null);
  f.why.hidden = left.length === 0;
}

const finished = s => ['proved', 'nothing', 'failed', 'refused', 'approval'].includes(s.state);

// run makes the steps that are left.
async function run(f) {
  f.stop = false;
  enter(f, 'running');
  replace(f.fault);
  f.box.focus({preventScroll: true}); // the button that was pressed goes
  const stop = h('button', {type: 'button', 'data-do': 'stop', onclick: () => { f.stop = true; stop.setAttribute('aria-disabled', 'true'); }}, 'Stop after this step');
  replace(f.actions, f.steps.filter(s => !finished(s)).length > 1 ? stop : null);
  for (const s of f.steps) {
    if (finished(s)) continue;
    try {
      if (s.state === 'later' && await again(f, s)) return pause(f, 'This is what the next step does. Look at it, and continue.');
      await make(f, s);
    } catch (e) {
      if (e.status === 401) return undefined;
      return failed(f, e, s);
    }
    if (!f.box.isConnected) return undefined; // the page was left: nothing more is sent
    if (s.state === 'failed' || s.state === 'refused') return ended(f, 'failed');
    if (f.stop && f.steps.some(x => !finished(x))) return pause(f, 'Stopped. The steps that were made stay; continue or undo them.');
  }
  return ended(f, 'done');
}

function pause(f, text) {
  enter(f, 'stopped');
  if (text) replace(f.status, text);
  buttons(f);
}

// make sends one step and follows it to its outcome. It is sent with a key of its own, so that
// the same step is made once, however often it has to be sent.
async function make(f, s) {
  const {method, path, body, query, ifNoneMatch} = s.step;
  s.mark('sending');
  const began = performance.now();
  let answer;
  try {
    answer = await api.write(method, path, body, {query, ifMatch: matchOf(s.step, f.made), ifNoneMatch, why: f.why.control.value.trim(), repeat: s.key, wait: 'stored'});
  } catch (e) {
    s.mark('planned');
    throw e;
  }
  if (answer.approval) {
    s.mark('approval');
    replace(f.status, path === '/ports/offer' ? 'The offer waits: nothing is changed until the other tenant accepts it. ' : 'A second person has to approve this: nothing is changed until then. ', link(toHash('tenants'), 'Approvals'));
    return;
  }
  if (!answer.follow) {
    s.mark('nothing');
    return;
  }
  // What is sent again, as its answer was lost, is made once.
  if (!f.made.some(m => m.step === s.step)) f.made.push({step: s.step, revision: answer.revision});
  f.hint.hidden = true;
  s.mark('pending');
  const outcome = await follow(f, answer, began);
  s.mark(outcome.state);
  replace(s.place, words(answer.words.map(f.options.say || (w => w))), result(outcome, answer.revision), h('details', {}, h('summary', {}, 'The plan'), ...s.place.childNodes));
}

// follow waits for the outcome of a revision: it looks again at each event, and now and then.
async function follow(f, answer, began) {
  /** @type {(value?: any) => void} */
  let wake = () => {};
  const stopListening = listen(f.app, () => wake());
  try {
    for (;;) {
      const r = await api.item(answer.follow.replace(/^\/api\/v1/, ''), {}, {background: true});
      if (r.outcome && r.outcome.state !== 'pending') return r.outcome;
      const seconds = (performance.now() - began) / 1000;
      replace(f.status, `Revision ${answer.revision} is stored; it is being written to the fabric and proved: ${seconds.toFixed(0)} s.`, seconds * 1000 > slow ? ' This takes long: see the page Events for what the service does. You may leave this page; the change goes on.' : '');
      if (!f.box.isConnected) return r.outcome || {state: 'pending'};
      await new Promise(resolve => { wake = resolve; setTimeout(resolve, askedEvery); });
    }
  } finally {
    stopListening();
  }
}

// listen calls g at each event; app.onEvent alone knows when the page is left.
function listen(app, g) {
  let on = true;
  app.onEvent(() => { if (on) g(); });
  return () => { on = false; };
}

function result(o, revision) {
  return [h('p', {}, 'Verdict of the fabric: ', verdictMark(o.verdict), ` after ${(o.seconds || 0).toFixed(3)} s, ${o.writes} written`, o.failures ? `, ${o.failures} failed` : '', '. ', link(toHash('history', {revision}), `Revision ${revision}`)),
    o.reasons && o.reasons.length ? h('ul', {class: 'words'}, o.reasons.map(r => h('li', {}, r))) : null];
}

function ended(f, state) {
  enter(f, state);
  const waits = f.steps.filter(s => s.state === 'approval').length;
  const bad = f.steps.find(s => s.state === 'failed' || s.state === 'refused');
  if (bad) {
    replace(f.fault, h('p', {class: 'fault'}, bad.state === 'refused'
      ? 'The fabric cannot take this step, and nothing was written to it; the step is stored all the same. Undo it, or change what stands in its way.'
      : 'This step was written and could not be proved. The service tries again at its next look at the fabric: see Proof and audit for what is wrong, or undo it.'));
  }
  if (!waits) replace(f.status, bad ? 'The change has ended.' : f.made.length ? 'The change is made and proved.' : 'Nothing was changed.');
  buttons(f);
  if (f.options.done) f.options.done(state);
}

// failed says what the service answered, and what can be done.
function failed(f, e, s) {
  const stale = e.status === 412 || e.status === 428;
  enter(f, stale ? 'stale' : 'failed');
  const more = {
    412: 'Somebody has changed it since it was read. Read it again and look at the new plan.',
    428: 'It was changed before: the service wants to know that you have seen how it is now.',
    403: 'You may not do this, or a quota is used up.',
    429: 'Too many changes in a minute: wait, and try again.',
    503: 'The service could not store it, or is not master of the subnet: try again. The same change is made only once.',
    0: 'It is not known whether the change was stored: try again. The same change is made only once.',
  }[e.status];
  // An undo is not planned again: it would take back what others did since.
  const since = stale && f.steps.some(x => x.step.every) ? ['Others have changed something since, which this would take back too: take back by hand what is to be, or see ', link('#/history', 'History'), '.'] : null;
  replace(f.fault, h('p', {class: 'fault'}, s ? `${s.step.title}: ` : '', (f.options.say || (t => t))(e.message), '. ', since || more || ''));
  replace(f.status, '');
  const again = f.options.again ? button(stale ? 'Read it again' : 'Plan it again', f.options.again, {class: 'primary', 'data-do': 'again'}) : null;
  const retry = s && [0, 429, 503].includes(e.status) ? button('Try again', () => run(f), {class: 'primary'}) : null;
  replace(f.actions, retry || again, f.made.length ? undoButton(f) : null, f.options.back ? button('Back', f.options.back, {'data-do': 'back'}) : null);
  f.box.focus({preventScroll: true});
}

// undoButton leads to the plan that takes back what was made.
function undoButton(f) {
  const steps = undoSteps(f.made);
  if (!steps.length && f.made.length > 1) return h('span', {}, 'Others made changes in between: take back what is to be taken back by hand, or in ', link('#/history', 'History'), '.');
  if (!steps.length) return null;
  return button('Undo…', () => {
    const next = flow(f.app, steps, {...f.options, title: 'Undo', why: `undo of revision ${f.made.map(m => m.revision).join(', ')}`, again: null});
    f.box.replaceWith(next);
  }, {'data-do': 'undo'});
}
