// Drains: switches that carry no packets from one switch to another, so that they can be
// taken out of service.

import {button, field, h, mark, replace, table} from '../dom.js';
import * as api from '../api.js';
import {section} from '../parts/controls.js';
import {drain, undrain} from '../parts/drain.js';
import {follow} from '../parts/outcome.js';

// drainsPart is the part of the page; read fills it. params.drain is a switch to begin with.
export function drainsPart(params, app) {
  const place = h('div', {});
  const names = h('datalist', {id: 'drain-switches'});
  const name = field('Switch', h('input', {type: 'search', list: names.id, value: params.drain || '', autocomplete: 'off', spellcheck: 'false', maxlength: '64', required: true}),
    'Name or node GUID. Packets between other switches take other ways; hosts at the switch itself keep theirs.');
  const why = field('Reason', h('input', {maxlength: '500', autocomplete: 'off'}), 'For the history.');
  const list = table('Switches that are drained', [
    {title: 'Switch', cell: d => [d.name, ' ', h('code', {}, d.switch)], sort: d => d.name},
    {title: 'Routes that still lead over it', number: true, cell: d => d.routes, sort: d => d.routes},
    {title: 'May be taken out of service', cell: d => d.routes === 0 ? mark('good', 'yes') : mark('warn', 'not yet')},
    {title: 'Carry again', cell: d => app.session.read_only ? '' : button(`Undrain ${d.name}`, () => ended(d), {fail: e => name.fault(e.message)})},
  ], [], {hideCaption: true, empty: 'No switch is drained.', onrow: (tr, d) => { tr.dataset.drain = d.switch; tr.dataset.routes = d.routes; }});
  const read = async background => list.update(await api.all('/drains', {}, {background}));
  const done = changed => { replace(place, follow(changed, app)); return read(false); };
  const began = async () => {
    name.fault('');
    replace(place);
    const text = name.control.value.trim();
    if (!text) { name.fault('Want the name or the node GUID of a switch.'); name.control.focus(); return; }
    try {
      const changed = await drain(text, text, why);
      if (changed) await done(changed);
    } catch (e) {
      name.fault(e.message);
      name.control.focus();
    }
  };
  const ended = async d => {
    const changed = await undrain(d.switch, d.name, why);
    if (changed) await done(changed);
  };
  const form = app.session.read_only ? null : h('form', {onsubmit: e => { e.preventDefault(); began(); }},
    h('div', {class: 'row filters'}, name, why, names), h('div', {class: 'actions'}, h('button', {type: 'submit', class: 'primary'}, 'Drain …')));
  const box = section('Drained switches', 'drains', h('p', {class: 'hint'}, 'A switch with no route that leads over it may be taken out of service.'), form, place, list);
  box.read = async background => {
    await read(background);
    if (names.firstChild) return;
    const switches = await api.all('/nodes', {type: 'switch'}, {background: true});
    replace(names, switches.map(n => h('option', {value: n.description}, n.guid)));
  };
  return box;
}
