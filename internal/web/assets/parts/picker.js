// Ports are chosen by search, by pasting a list, or by dropping a file of one on the box.
//
// For tests: [data-picker] is the box; [data-do=paste] takes what was pasted; [data-found] each port
// that was found, [data-chosen] each that is chosen.

import {button, count, field, h, replace, table} from '../dom.js';
import {find, label, parse} from './ports.js';

const foundWhole = 20; // ports that are drawn whole
const fileMost = 1 << 20; // bytes of a file that is dropped

// picker is a box to choose ports. options: title; keep(port), which may be chosen, and
// refusal, why another may not; note(port), what is said of one beside its name; changed(),
// called when the choice has changed, as is onchosen of the box. It has chosen(), a list of
// {port, membership}, and choose(list).
/** @param {any} ports
 * @param {{title: string, keep?: (port: any) => boolean, note?: (port: any) => string, refusal?: string, changed?: () => void}} about */
export function picker(ports, {title, keep = () => true, note = () => '', refusal = 'it cannot be chosen here', changed = () => {}}) {
  const p = {ports, keep, note, refusal, changed: () => { drawChosen(p); changed(); box.onchosen(); }, chosen: new Set(), pasted: new Map()};
  p.search = field('Search', h('input', {type: 'search', autocomplete: 'off', spellcheck: 'false', maxlength: '64'}), 'Name, GUID, LID or owner; several words narrow it.');
  p.found = table('Ports found', [
    {title: 'Port', cell: label, sort: label}, {title: 'GUID', cell: port => h('code', {}, port.guid), sort: port => port.guid},
    {title: 'LID', cell: port => port.lid || '', sort: port => port.lid || 0, number: true}, {title: 'Has it', cell: note, sort: note},
  ], [], {hideCaption: true, whole: foundWhole, filter: false, empty: 'No port has all of these words.', onrow: (tr, port) => { tr.dataset.found = port.guid; },
    choose: {key: port => port.guid, name: port => `${label(port)} ${port.guid}`, chosen: p.chosen, changed: () => p.changed()}});
  p.list = table('Ports chosen', [
    {title: 'Port', cell: c => [label(c.port), c.membership ? ` (${c.membership})` : '', c.port.found === false ? h('span', {class: 'hint'}, ' not found on the fabric') : null], sort: c => label(c.port)},
    {title: 'Leave out', cell: c => button('×', () => { set(p, [c.port.guid], false); p.search.control.focus(); }, {class: 'plain', 'aria-label': `Do not choose ${label(c.port)}`})},
  ], [], {hideCaption: true, whole: foundWhole, empty: 'None.', onrow: (tr, c) => { tr.dataset.chosen = c.port.guid; }});
  p.some = h('h2', {'aria-live': 'polite'});
  p.none = button('Choose none', () => { set(p, [...p.chosen], false); p.search.control.focus(); });
  p.paste = field('Or paste a list, or drop a text file here', h('textarea', {rows: '4', spellcheck: 'false', autocomplete: 'off'}),
    'One port in each line: a GUID, a name or a LID, with =full or =limited behind it if need be. What follows # is a remark.');
  p.problems = h('div', {role: 'alert'});
  const box = h('fieldset', {class: 'picker', 'data-picker': true}, h('legend', {}, title),
    h('div', {class: 'columns'},
      h('div', {}, p.search, p.found),
      h('div', {}, p.paste, h('div', {class: 'actions'}, button('Take the list', () => take(p, p.paste.control.value), {'data-do': 'paste'})), p.problems),
      h('div', {class: 'chosen'}, p.some, p.list, p.none)));
  p.search.control.addEventListener('input', () => drawFound(p));
  p.search.control.addEventListener('keydown', e => { if (e.key === 'Enter') e.preventDefault(); });
  dropping(p, box);
  drawFound(p);
  drawChosen(p);
  box.chosen = () => chosenOf(p);
  box.onchosen = () => {};
  // choose takes a list of what chosen() gave, or of ports.
  box.choose = list => { for (const c of list) enter(p, c.port ? c : {port: c, membership: ''}); p.found.redraw(); p.changed(); };
  return box;
}

function drawFound(p) { p.found.update(find(p.ports, p.search.control.value, Infinity, p.keep).hits); }

function chosenOf(p) { return [...p.chosen].map(g => p.pasted.get(g) || {port: p.ports.byGUID.get(g), membership: ''}); }

function enter(p, c) {
  p.pasted.set(c.port.guid, c);
  p.chosen.add(c.port.guid);
}

function set(p, guids, on) {
  for (const g of guids) if (on) p.chosen.add(g); else p.chosen.delete(g);
  p.found.redraw();
  p.changed();
}

function drawChosen(p) {
  const list = chosenOf(p);
  replace(p.some, list.length ? `${count(list.length, 'port')} chosen` : 'No port is chosen yet');
  p.list.update(list);
  p.list.hidden = !list.length;
  p.none.hidden = list.length < 2;
}

// take chooses what a pasted list names, and says of each line that it does not understand
// why.
function take(p, text) {
  const {found, problems} = parse(p.ports, text);
  const others = found.filter(f => !p.keep(f.port));
  for (const f of others) problems.push({line: 0, text: label(f.port), problem: p.refusal});
  for (const f of found) if (p.keep(f.port)) enter(p, f);
  replace(p.problems,
    problems.length ? [h('p', {class: 'fault'}, `${count(problems.length, 'entry', 'entries')} not taken:`), h('ul', {class: 'words'}, problems.slice(0, 50).map(x => h('li', {'data-problem': x.line}, x.line ? `line ${x.line}: ` : '', h('code', {}, x.text), `: ${x.problem}`)))] : null,
    problems.length > 50 ? h('p', {}, `and ${problems.length - 50} more`) : null);
  if (!found.length && !problems.length) replace(p.problems, h('p', {class: 'fault'}, 'The list is empty.'));
  if (!problems.length) p.paste.control.value = '';
  p.found.redraw();
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
