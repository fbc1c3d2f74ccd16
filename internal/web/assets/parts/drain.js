// Switches that carry no packets from one switch to another, so that they can be taken out of
// service: each change is tried first, and made where the plan is agreed to.

import {dialog, h} from '../dom.js';
import * as api from '../api.js';
import {texts} from './controls.js';
import {tried} from './outcome.js';

// drain drains a switch, named by its name or node GUID; title is what it is called in the
// question. why is the field with the reason, shown in the question if inside. It returns what
// was changed, null where the answer was no.
export async function drain(name, title, why, inside = false) {
  const body = {switch: name};
  const trial = await api.write('POST', '/drains', body, {dryRun: true});
  if (!trial.words || !trial.words.length) throw new Error('It is drained already.');
  if (!await ask(`Drain ${title}?`, trial, 'Drain', inside ? why : null)) return null;
  return api.write('POST', '/drains', body, {why: reason(why), repeat: api.repeatKey()});
}

// undrain lets a switch carry packets again, named by its node GUID.
export async function undrain(guid, title, why, inside = false) {
  const path = `/drains/${guid}`;
  const trial = await api.write('DELETE', path, undefined, {dryRun: true});
  if (!await ask(`Let ${title} carry packets again?`, trial, 'Undrain', inside ? why : null)) return null;
  return api.write('DELETE', path, undefined, {why: reason(why), repeat: api.repeatKey()});
}

function ask(title, trial, action, more) { return dialog(title, h('div', {}, texts(trial.words || []), tried(trial), more), action); }

function reason(why) { return why.control.value.trim() || undefined; }
