// A text field with a list of what its text may mean, by mouse and by keys (the pattern
// "combobox" of ARIA).

import {h, replace, unique} from '../dom.js';

// combo gives a field such a list. find(text) are the choices, each {name, hint}; picked gets
// the one that is taken. first: the first choice is marked from the beginning, so that Enter
// takes it, and the list stays open. It has list, the element; search(), which finds again; and
// close().
export function combo(input, title, find, picked, {first = false} = {}) {
  const list = h('ul', {class: 'choices', role: 'listbox', id: unique('choices'), 'aria-label': title, hidden: true});
  const c = {input, list, find, picked, first, hits: [], at: -1, entered: false};
  for (const [name, value] of Object.entries({role: 'combobox', autocomplete: 'off', spellcheck: 'false', 'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': list.id})) input.setAttribute(name, value);
  c.search = () => {
    c.hits = first || input.value.trim() ? find(input.value) : [];
    c.at = first && c.hits.length ? 0 : -1;
    draw(c);
  };
  c.close = () => { c.hits = []; c.at = -1; draw(c); };
  input.addEventListener('input', c.search);
  input.addEventListener('keydown', e => pressed(c, e));
  // The same press of Enter does not send the form too.
  input.addEventListener('keypress', e => { if (e.key === 'Enter' && c.entered) e.preventDefault(); });
  input.addEventListener('keyup', () => { c.entered = false; });
  if (!first) input.addEventListener('blur', c.close);
  return c;
}

function take(c, hit) {
  c.close();
  c.picked(hit);
}

function draw(c) {
  replace(c.list, c.hits.map((hit, i) => {
    const option = h('li', {role: 'option', id: `${c.list.id}-${i}`, 'aria-selected': i === c.at ? 'true' : 'false'}, h('span', {}, hit.name), h('span', {class: 'hint'}, hit.hint));
    // The field keeps the focus: mousedown would take it.
    option.addEventListener('mousedown', e => { e.preventDefault(); take(c, hit); });
    return option;
  }));
  c.list.hidden = c.hits.length === 0;
  c.input.setAttribute('aria-expanded', String(!c.list.hidden));
  if (c.at < 0) {
    c.input.removeAttribute('aria-activedescendant');
    return;
  }
  c.input.setAttribute('aria-activedescendant', `${c.list.id}-${c.at}`);
  c.list.children[c.at].scrollIntoView({block: 'nearest'});
}

// pressed walks the list with arrow keys, takes with Enter what they stand on, and closes the
// list with Escape.
function pressed(c, e) {
  if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
    e.preventDefault();
    if (c.list.hidden) c.hits = c.find(c.input.value);
    if (!c.hits.length) return;
    if (e.key === 'ArrowDown') c.at = (c.at + 1) % c.hits.length;
    else c.at = c.at > 0 ? c.at - 1 : c.hits.length - 1;
    draw(c);
  } else if (e.key === 'Enter' && c.at >= 0) {
    e.preventDefault();
    c.entered = true;
    take(c, c.hits[c.at]);
  } else if (e.key === 'Escape' && !c.list.hidden && !c.first) {
    e.preventDefault();
    c.close();
  }
}
