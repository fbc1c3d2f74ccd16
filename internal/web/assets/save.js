// What a page shows, as a file: a table as CSV or JSON, a drawing as SVG, a canvas as PNG. It is
// made in the page of what is seen there, filters and order too; the service is not asked.
//
// For tests and the palette: [data-save] are the buttons, with what each saves.

import {button, h, svg} from './dom.js';

const lineRoom = 18; // units above a drawing, for each line of its title
const revokeAfter = 10000; // ms from the beginning of a download until its content may go

// styles of a drawing that come from the style sheet, which its file does not have.
const styles = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'vector-effect', 'paint-order', 'font-family', 'font-size', 'font-weight'];

// textOf is what a cell shows: its word, where it shows a sign for that; of times the moment in UTC, of fields their value, and nothing of
// signs and of buttons that do something.
export function textOf(cell) {
  if (cell.dataset.word !== undefined) return cell.dataset.word;
  const copy = cell.cloneNode(true);
  const fields = cell.querySelectorAll('select, input, textarea');
  for (const [i, f] of [...copy.querySelectorAll('select, input, textarea')].entries()) {
    const now = fields[i];
    f.replaceWith(now.type === 'checkbox' ? (now.checked ? 'yes' : 'no') : now.selectedOptions ? [...now.selectedOptions].map(o => o.textContent).join(', ') : now.value);
  }
  for (const e of copy.querySelectorAll('[aria-hidden=true], .hidden, button:not(.plain)')) e.remove();
  for (const e of copy.querySelectorAll('time')) e.replaceWith(e.dateTime);
  for (const e of copy.querySelectorAll('li:not(:last-child)')) e.append('; ');
  const text = copy.textContent.replace(/\s+/g, ' ').trim();
  const number = text.replaceAll(',', '');
  return cell.classList.contains('number') && /^-?\d{1,15}(\.\d+)?$/.test(number) ? Number(number) : text;
}

// cells are the rows of a table as they are shown, the titles of its columns first.
/** @param {HTMLTableElement} table @returns {any} */
export function cells(table) {
  const grid = [...table.rows].map(() => []);
  for (const [y, tr] of [...table.rows].entries()) {
    let x = 0;
    for (const cell of tr.cells) {
      while (grid[y][x] !== undefined) x++;
      const text = textOf(cell);
      for (let dy = 0; dy < cell.rowSpan && y + dy < grid.length; dy++) for (let dx = 0; dx < cell.colSpan; dx++) grid[y + dy][x + dx] = dx ? '' : text;
    }
  }
  return grid;
}

// csv is a grid of cells as RFC 4180 has it. What a spreadsheet would take for a formula gets an
// apostrophe before it, also behind what separates cells in some countries.
export function csv(grid) {
  const safe = text => String(text).replace(/(^|;)(\s*[=+\-@＝＋－＠])/g, "$1'$2");
  return grid.map(row => `${row.map(c => `"${safe(c).replaceAll('"', '""')}"`).join(',')}\r\n`).join('');
}

// json is a list of objects, their fields named by the titles; of two columns with the same title
// the second has its number.
export function json([titles, ...rows]) {
  const names = titles.map((t, i) => (titles.indexOf(t) === i ? String(t) : `${t} (${i + 1})`));
  return `${JSON.stringify(rows.map(row => Object.fromEntries(names.map((n, i) => [n, row[i] ?? '']))), null, 2)}\n`;
}

function download(what, kind, content) {
  const url = URL.createObjectURL(content);
  const name = what.toLowerCase().normalize('NFKD').replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60);
  h('a', {href: url, download: `ibwarden-${name || 'picture'}.${kind}`}).click();
  setTimeout(() => URL.revokeObjectURL(url), revokeAfter);
}

function saves(what, kind, content) {
  return button([kind.toUpperCase(), h('span', {class: 'hidden'}, ` of ${what}`)], async () => download(what, kind, await content()), {'data-save': `${what} as ${kind.toUpperCase()}`});
}

// tableSaver is the control that saves a table, or what a function makes of one; what says what is in it.
export function tableSaver(what, table) {
  const grid = () => cells(typeof table === 'function' ? table() : table);
  return h('details', {class: 'save'}, h('summary', {}, 'Save', h('span', {class: 'hidden'}, ` ${what}`)),
    saves(what, 'csv', () => new Blob([csv(grid())], {type: 'text/csv'})), saves(what, 'json', () => new Blob([json(grid())], {type: 'application/json'})));
}

// pictureSaver is the control that saves a canvas or a drawing; title has the lines above it.
export function pictureSaver(what, element, title = [what]) {
  const of = element instanceof HTMLCanvasElement ? ['png', () => new Promise(done => element.toBlob(done))] : ['svg', () => new Blob([drawing(element, title)], {type: 'image/svg+xml'})];
  return h('details', {class: 'save'}, h('summary', {}, 'Save', h('span', {class: 'hidden'}, ` ${what}`)), saves(what, ...of));
}

// drawing is an SVG as a file of its own, as it looks now.
function drawing(element, title) {
  const copy = element.cloneNode(true);
  const now = [element, ...element.querySelectorAll('*')];
  for (const [i, e] of [copy, ...copy.querySelectorAll('*')].entries()) {
    const style = getComputedStyle(now[i]);
    for (const name of styles) e.setAttribute(name, style.getPropertyValue(name));
    e.removeAttribute('class');
  }
  const {x, y, width, height} = element.viewBox.baseVal;
  const room = title.length * lineRoom + lineRoom / 2;
  const box = {x, y: y - room, width, height: height + room};
  const {color, fontFamily} = getComputedStyle(element);
  const panel = getComputedStyle(element.closest('.panel') || document.documentElement).backgroundColor;
  for (const [name, value] of Object.entries({viewBox: Object.values(box).join(' '), width: box.width, height: box.height})) copy.setAttribute(name, value);
  copy.removeAttribute('preserveAspectRatio');
  copy.prepend(svg('title', {}, title.join(', ')), svg('desc', {}, element.getAttribute('aria-label') || ''), svg('rect', {...box, fill: panel}),
    ...title.map((line, i) => svg('text', {x: x + 6, y: y - room + (i + 1) * lineRoom, fill: color, 'font-family': fontFamily, 'font-size': '12'}, line)));
  return new XMLSerializer().serializeToString(copy);
}
