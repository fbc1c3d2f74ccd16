// A box in which a port is chosen by name, GUID or LID: a text field with a list of what it
// may mean, by mouse and by keys (the pattern "combobox" of ARIA).

import {field, h, plain, replace, unique} from '../dom.js';
import * as api from '../api.js';
import {find, index, label, named} from './ports.js';

const shown = 12; // ports in the list at once
const freshFor = 10000; // ms for which a list of ports that was read is used again

let kept = null; // {at, who, ports}: a promise

// allPorts are the end ports that the caller sees, prepared to be searched.
export function allPorts({again = false} = {}) {
  const who = (api.session() || {}).session;
  if (again || !kept || kept.who !== who || Date.now() - kept.at > freshFor) {
    const ports = api.all('/ports').then(index);
    kept = {at: Date.now(), who, ports};
    ports.catch(() => { kept = null; });
  }
  return kept.ports;
}

// portBox is a labelled box. It has value(), the GUID or what was typed, and set(text);
// picked is called when a port was chosen.
export function portBox(title, ports, picked = () => {}) {
  const list = h('ul', {class: 'choices', role: 'listbox', id: unique('choices'), 'aria-label': title, hidden: true});
  const input = h('input', {type: 'search', role: 'combobox', autocomplete: 'off', spellcheck: 'false', 'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': list.id, maxlength: '64'});
  const box = field(title, input, 'Name, GUID or LID of an end port.');
  input.after(list);
  box.classList.add('portbox');
  const b = {ports, picked, list, input, box, hits: [], at: -1, chosen: null, entered: false};
  input.addEventListener('input', () => search(b));
  input.addEventListener('blur', () => close(b));
  input.addEventListener('keydown', e => pressed(b, e));
  // The same press of Enter does not send the form too.
  input.addEventListener('keypress', e => { if (e.key === 'Enter' && b.entered) e.preventDefault(); });
  input.addEventListener('keyup', () => { b.entered = false; });
  // value is the GUID of what is meant; what no port is called is given as it was typed, and
  // the service says what it does not understand.
  box.value = () => {
    const text = input.value.trim();
    if (b.chosen || !text) return b.chosen ? b.chosen.guid : '';
    const one = named(ports, text);
    return one.port ? one.port.guid : text;
  };
  box.set = text => {
    b.chosen = text ? named(ports, text).port || null : null;
    input.value = b.chosen ? plain(label(b.chosen)) : text || '';
  };
  return box;
}

function close(b) {
  b.list.hidden = true;
  b.at = -1;
  b.input.setAttribute('aria-expanded', 'false');
  b.input.removeAttribute('aria-activedescendant');
}

function choose(b, p) {
  b.chosen = p;
  b.input.value = plain(label(p));
  b.box.fault('');
  close(b);
  b.picked(p);
}

function draw(b) {
  replace(b.list, b.hits.map((p, i) => {
    const option = h('li', {role: 'option', id: `${b.list.id}-${i}`, 'aria-selected': i === b.at ? 'true' : 'false', 'data-guid': p.guid},
      h('span', {}, label(p)), h('span', {class: 'hint'}, `${p.guid}${p.lid ? `, LID ${p.lid}` : ''}${p.owner ? `, ${p.owner}` : ''}`));
    // The field keeps the focus: mousedown would take it.
    option.addEventListener('mousedown', e => { e.preventDefault(); choose(b, p); });
    return option;
  }));
  b.list.hidden = b.hits.length === 0;
  b.input.setAttribute('aria-expanded', String(!b.list.hidden));
  if (b.at < 0) {
    b.input.removeAttribute('aria-activedescendant');
    return;
  }
  b.input.setAttribute('aria-activedescendant', `${b.list.id}-${b.at}`);
  b.list.children[b.at].scrollIntoView({block: 'nearest'});
}

function search(b) {
  b.chosen = null;
  b.at = -1;
  b.hits = b.input.value.trim() ? find(b.ports, b.input.value, shown).hits : [];
  draw(b);
}

// pressed walks the list with arrow keys, takes with Enter what they stand on, and closes the
// list with Escape.
function pressed(b, e) {
  if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
    e.preventDefault();
    if (b.list.hidden) b.hits = find(b.ports, b.input.value, shown).hits;
    if (!b.hits.length) return;
    if (e.key === 'ArrowDown') b.at = (b.at + 1) % b.hits.length;
    else b.at = b.at > 0 ? b.at - 1 : b.hits.length - 1;
    draw(b);
  } else if (e.key === 'Enter' && !b.list.hidden && b.at >= 0) {
    e.preventDefault();
    b.entered = true;
    choose(b, b.hits[b.at]);
  } else if (e.key === 'Escape' && !b.list.hidden) {
    e.preventDefault();
    close(b);
  }
}
