// The keys of the console, in one table: what ? shows, and docs/console.md has.

import {h, table, unique} from '../dom.js';

// keys are [key, where it works, what it does].
export const keys = [
  ['Ctrl K', 'everywhere', 'finds hosts, ports, LIDs, tenants, partitions, revisions and actions'],
  ['?', 'everywhere', 'lists these keys'],
  ['g and a digit', 'everywhere', 'goes to a page'],
  ['/', 'pages with a search', 'goes to it'],
  ['Arrow keys', 'map', 'go from device to device'],
  ['Enter', 'map', 'shows the device, or unfolds the box'],
  ['f', 'map', 'folds or unfolds the box'],
  ['+ − 0', 'map', 'nearer, farther, the whole'],
  ['Shift and arrow keys', 'map', 'move the view'],
  ['Arrow keys', 'slider', 'go from moment to moment'],
  ['Arrow keys', 'matrix', 'go from cell to cell'],
  ['Enter', 'matrix', 'opens the cell'],
  ['Escape', 'matrix', 'goes back to the cell'],
  ['Arrow keys', 'boxes of rows', 'go from row to row'],
  ['Shift Space', 'boxes of rows', 'chooses all rows from the last one'],
  ['Escape', 'rows', 'goes on behind a long table'],
];

// showKeys lists the keys in a dialog.
export function showKeys() {
  const id = unique('keys');
  const d = h('dialog', {class: 'keys', 'aria-labelledby': id, onclose: () => d.remove()}, h('h2', {id, tabindex: '-1', autofocus: true}, 'Keys'),
    table('Keys', [
      {title: 'Key', cell: k => h('kbd', {}, k[0])}, {title: 'Where', cell: k => k[1]}, {title: 'What it does', cell: k => k[2]},
    ], keys, {hideCaption: true, save: false}),
    h('div', {class: 'actions'}, h('button', {type: 'button', class: 'primary', onclick: () => d.close()}, 'Close')));
  document.body.append(d);
  d.showModal();
}
