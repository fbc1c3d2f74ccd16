// Ports are chosen by search, by pasting a list, or by dropping a file of one on the box.
//
// For tests: [data-picker] is the box; its check boxes have data-guid; [data-do=paste] takes
// what was pasted, [data-do=all] all that were found; [data-chosen] each chosen port.

import {button, count, field, h, replace} from '../dom.js';
import {find, label, parse} from './ports.js';

const foundMost = 50; // ports shown at once
const chosenShown = 100; // chosen ports shown at once
const allMost = 10000; // ports that can be chosen together: what one request takes
const fileMost = 1 << 20; // bytes of a file that is dropped

// picker is a box to choose ports. options: title; keep(port), which may be chosen, and
// refusal, why another may not; note(port), what is said of one beside its name; changed(),
// called when the choice has changed, as is onchosen of the box. It has chosen(), a list of
// {port, membership}, and choose(list).
/** @param {any} ports
 * @param {{title: string, keep?: (port: any) => boolean, note?: (port: any) => string, refusal?: string, changed?: () => void}} about */
export function picker(ports, {title, keep = () => true, note = () => '', refusal = 'it cannot be chosen here', changed = () => {}}) {
  const p = {ports, keep, note, refusal, changed: () => { changed(); box.onchosen(); }, chosen: new Map()};
  p.search = field('Search', h('input', {type: 'search', autocomplete: 'off', spellcheck: 'false', maxlength: '64'}), 'Name, GUID, LID or owner; several words narrow it.');
  p.found = h('div', {class: 'found'});
  p.list = h('div', {class: 'chosen'});
  p.said = h('p', {class: 'hint', role: 'status'});
  p.paste = field('Or paste a list, or drop a text file here', h('textarea', {rows: '4', spellcheck: 'false', autocomplete: 'off'}),
    'One port in each line: a GUID, a name or a LID, with =full or =limited behind it if need be. What follows # is a remark.');
  p.problems = h('div', {role: 'alert'});
  const box = h('fieldset', {class: 'picker', 'data-picker': true}, h('legend', {}, title),
    h('div', {class: 'columns'},
      h('div', {}, p.search, p.said, p.found),
      h('div', {}, p.paste, h('div', {class: 'actions'}, button('Take the list', () => take(p, p.paste.control.value), {'data-do': 'paste'})), p.problems),
      p.list));
  p.search.control.addEventListener('input', () => drawFound(p));
  p.search.control.addEventListener('keydown', e => { if (e.key === 'Enter') e.preventDefault(); });
  dropping(p, box);
  drawFound(p);
  drawChosen(p);
  box.chosen = () => [...p.chosen.values()];
  box.onchosen = () => {};
  // choose takes a list of what chosen() gave, or of ports.
  box.choose = list => { for (const c of list) { const one = c.port ? c : {port: c, membership: ''}; p.chosen.set(one.port.guid, one); } drawFound(p); drawChosen(p); p.changed(); };
  return box;
}

function drawFound(p) {
  const text = p.search.control.value;
  const {hits, all} = find(p.ports, text, foundMost, p.keep);
  replace(p.said, all > foundMost ? `The first ${foundMost} of ${count(all, 'port')}` : count(all, 'port'));
  const every = () => set(p, find(p.ports, text, allMost, p.keep).hits, true);
  replace(p.found,
    h('ul', {class: 'checks'}, hits.map(port => {
      const tick = h('input', {type: 'checkbox', 'data-guid': port.guid, onchange: e => set(p, [port], e.target.checked, false)});
      tick.checked = p.chosen.has(port.guid);
      return h('li', {}, h('label', {}, tick, h('span', {}, label(port), h('span', {class: 'hint'}, ` ${port.guid}${port.lid ? ` LID ${port.lid}` : ''} ${p.note(port)}`))));
    })),
    all > 1 && all <= allMost ? button(`Choose all ${all.toLocaleString('en')} found`, every, {'data-do': 'all'}) : null);
}

function set(p, list, on, redraw = true) {
  for (const port of list) {
    if (on) p.chosen.set(port.guid, p.chosen.get(port.guid) || {port, membership: ''});
    else p.chosen.delete(port.guid);
  }
  if (redraw) drawFound(p);
  drawChosen(p);
  p.changed();
}

function drawChosen(p) {
  const list = [...p.chosen.values()];
  replace(p.list, h('h2', {'aria-live': 'polite'}, list.length ? `${count(list.length, 'port')} chosen` : 'No port is chosen yet'),
    h('ul', {class: 'checks'}, list.slice(0, chosenShown).map(c => h('li', {'data-chosen': c.port.guid}, h('span', {}, label(c.port), c.membership ? ` (${c.membership})` : '', c.port.found === false ? h('span', {class: 'hint'}, ' not found on the fabric') : null), ' ',
      h('button', {type: 'button', class: 'plain', 'aria-label': `Do not choose ${label(c.port)}`, onclick: () => {
        set(p, [c.port], false);
        p.search.control.focus();
      }}, '×')))),
    list.length > chosenShown ? h('p', {class: 'hint'}, `and ${list.length - chosenShown} more`) : null,
    list.length > 1 ? button('Choose none', () => { set(p, list.map(c => c.port), false); p.search.control.focus(); }) : null);
}

// take chooses what a pasted list names, and says of each line that it does not understand
// why.
function take(p, text) {
  const {found, problems} = parse(p.ports, text);
  const others = found.filter(f => !p.keep(f.port));
  for (const f of others) problems.push({line: 0, text: label(f.port), problem: p.refusal});
  for (const f of found) if (p.keep(f.port)) p.chosen.set(f.port.guid, f);
  replace(p.problems,
    problems.length ? [h('p', {class: 'fault'}, `${count(problems.length, 'entry', 'entries')} not taken:`), h('ul', {class: 'words'}, problems.slice(0, 50).map(x => h('li', {'data-problem': x.line}, x.line ? `line ${x.line}: ` : '', h('code', {}, x.text), `: ${x.problem}`)))] : null,
    problems.length > 50 ? h('p', {}, `and ${problems.length - 50} more`) : null);
  if (!found.length && !problems.length) replace(p.problems, h('p', {class: 'fault'}, 'The list is empty.'));
  if (!problems.length) p.paste.control.value = '';
  drawFound(p);
  drawChosen(p);
  p.changed();
}

// dropping takes a text file, or text, that is dropped anywhere on the box.
function dropping(p, box) {
  box.addEventListener('dragover', e => { e.preventDefault(); box.classList.add('over'); });
  box.addEventListener('dragleave', () => box.classList.remove('over'));
  box.addEventListener('drop', async e => {
    e.preventDefault();
    box.classList.remove('over');
    const file = e.dataTransfer.files[0];
    if (file && file.size > fileMost) {
      replace(p.problems, h('p', {class: 'fault'}, `${file.name} has ${file.size} bytes: want a list of at most ${fileMost}.`));
      return;
    }
    take(p, file ? await file.text() : e.dataTransfer.getData('text/plain'));
  });
}
