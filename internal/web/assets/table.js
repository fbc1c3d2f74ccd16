// Tables. One with many rows draws those in view alone, in rows of the same height; it is filtered,
// sorted and saved whole.
//
// For tests: [data-filter] is the text that rows must have, [data-act] each thing that is done with
// the rows that are chosen; a row that is drawn of many has its place among them in aria-rowindex.

import {button, count, h, params, remember, replace, shownPage, unique} from './dom.js';
import {tableSaver, textOf} from './save.js';

const wholeMost = 200; // rows that are drawn whole, so that the browser's own search finds them
const beyond = 15; // rows that are drawn above and below those in view
const rowHeight = 40; // pixels of CSS, until a row was measured
const viewHeight = 800; // likewise

const collator = new Intl.Collator('en', {numeric: true});

/** @typedef {{title: string, cell: (row: any) => any, sort?: (row: any) => any, text?: (row: any) => string, number?: boolean, class?: string, head?: boolean}} Column */
/** @typedef {{empty?: string, hideCaption?: boolean, onrow?: (tr: any, row: any) => void, save?: boolean, whole?: number, filter?: boolean, choose?: Choosing}} Options */
/** @typedef {{key: (row: any) => string, name: (row: any) => string, actions?: [string, (rows: any[]) => any][], chosen?: Set<string>, changed?: () => void}} Choosing the keys of those that are chosen may be somebody else's */

// table is a table with a caption. The first column is the header of its row unless its head is false;
// sort is what a column is sorted by, text what is searched in it where that is not what its cell shows.
// The address keeps the order and the filter of the table that was sorted or filtered last. What is
// wider than the page scrolls in a region that the keyboard reaches, and it can be saved unless save is
// false. whole is how many rows are drawn whole; filter is false where the page has a search of its own. With choose, rows can be chosen for its actions. It has
// update(rows), and redraw() for rows that show something else than before.
/** @param {string} caption @param {Column[]} columns @param {any[]} [rows] @param {Options} [options] */
export function table(caption, columns, rows = [], options = {}) {
  const t = new Table(caption, columns, options);
  t.update(rows);
  return Object.assign(t.box, {update: list => t.update(list), redraw: () => t.draw(), print: on => { t.printing = on; t.draw(); }});
}

for (const [event, on] of [['beforeprint', true], ['afterprint', false]]) {
  window.addEventListener(String(event), () => { for (const e of /** @type {NodeListOf<any>} */ (document.querySelectorAll('.tablebox'))) e.print(on); });
}

// kept is what the address says of a table.
function kept(name, caption) {
  const text = params()[name] || '';
  return text.startsWith(`${caption}: `) ? text.slice(caption.length + 2) : '';
}

// compare orders what columns are sorted by: numbers, also those in a text, by their size. GUIDs and
// P_Keys are texts of the same length.
function compare(x, y) {
  if (typeof x === 'number' && typeof y === 'number') return x - y;
  const [a, b] = [String(x), String(y)];
  return a.startsWith('0x') && b.startsWith('0x') ? (a < b ? -1 : a > b ? 1 : 0) : collator.compare(a, b);
}

class Table {
  /** @param {string} caption @param {Column[]} columns @param {Options} options */
  constructor(caption, columns, {empty = 'None.', hideCaption = false, onrow = null, save = true, whole = wholeMost, filter = true, choose = null}) {
    this.caption = caption;
    this.columns = columns;
    this.options = {empty, onrow, save, whole, filter};
    this.choose = choose;
    this.printing = false;
    this.rows = []; // all of them
    this.list = []; // those that the filter leaves, in their order
    this.texts = new Map(); // what is searched, by row
    this.chosen = choose && choose.chosen || new Set(); // keys
    this.last = ''; // key of the row that was chosen last, from which Shift chooses
    this.drawn = new Map(); // rows of the document by their place in the list
    this.height = 0; // of a row, once it was measured
    const [, down, by] = /^(-?)(.*)$/s.exec(kept('sort', caption));
    const column = columns.find(c => c.sort && c.title === by);
    this.order = column ? {column, down: Boolean(down)} : null;
    const id = unique('caption');
    this.heads = columns.map(c => this.head(c));
    this.all = choose && h('input', {type: 'checkbox', 'aria-label': `Choose all: ${caption}`, onchange: () => this.pick(this.list, this.all.checked)});
    this.body = h('tbody', {onclick: e => this.clicked(e), onkeydown: e => this.pressed(e)});
    this.element = h('table', {}, h('caption', {id, class: hideCaption ? 'hidden' : null}, caption), h('thead', {}, h('tr', {'aria-rowindex': '1'}, choose ? h('th', {scope: 'col'}, this.all) : null, this.heads)), this.body);
    this.filter = h('input', {type: 'search', 'data-filter': true, 'aria-label': `Filter: ${caption}`, placeholder: 'Filter', value: kept('filter', caption), spellcheck: 'false', autocomplete: 'off', maxlength: '200', oninput: () => {
      remember(shownPage(), {filter: this.filter.value ? `${caption}: ${this.filter.value}` : ''});
      this.arrange();
    }});
    this.said = h('span', {class: 'hint', role: 'status'});
    this.actions = choose && choose.actions ? choose.actions.map(([title, f]) => button(title, () => f(this.rows.filter(r => this.chosen.has(choose.key(r)))), {'data-act': title})) : [];
    this.tools = h('div', {class: 'row tools'}, this.filter, this.said, this.actions);
    this.view = h('div', {class: 'table', tabindex: '0', role: 'region', 'aria-labelledby': id, onscroll: () => this.window()}, this.element);
    this.saver = tableSaver(caption, () => h('table', {}, h('thead', {}, h('tr', {}, columns.map(c => h('th', {}, c.title)))), h('tbody', {}, this.list.map(r => this.row(r)))));
    this.box = h('div', {class: 'tablebox'}, this.tools, this.view, this.saver);
    // When it comes to be seen, or gets another size, other rows are in view.
    new ResizeObserver(() => requestAnimationFrame(() => this.window(true))).observe(this.view);
  }

  head(c) {
    const props = {scope: 'col', class: c.number ? 'number' : null};
    if (!c.sort) return h('th', props, c.title);
    const now = this.order && this.order.column === c ? this.order.down ? 'descending' : 'ascending' : 'none';
    const th = h('th', {...props, 'aria-sort': now}, h('button', {type: 'button', class: 'plain', onclick: () => {
      this.order = {column: c, down: this.order && this.order.column === c ? !this.order.down : Boolean(c.number)};
      for (const x of this.heads) if (x.hasAttribute('aria-sort')) x.setAttribute('aria-sort', 'none');
      th.setAttribute('aria-sort', this.order.down ? 'descending' : 'ascending');
      remember(shownPage(), {sort: `${this.caption}: ${this.order.down ? '-' : ''}${c.title}`}, true);
      this.arrange();
    }}, c.title));
    return th;
  }

  update(rows) {
    this.rows = rows;
    this.texts.clear();
    const keys = this.choose && !this.choose.chosen && new Set(rows.map(this.choose.key));
    if (keys) for (const k of this.chosen) if (!keys.has(k)) this.chosen.delete(k);
    this.arrange(false);
  }

  // text is what is searched of a row.
  text(row) {
    let text = this.texts.get(row);
    if (text === undefined) {
      text = this.columns.map(c => (c.text ? c.text(row) : textOf(h('td', {}, c.cell(row))))).join('\n').toLowerCase();
      this.texts.set(row, text);
    }
    return text;
  }

  // arrange filters and sorts.
  arrange(top = true) {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.list = words.length ? this.rows.filter(r => words.every(w => this.text(r).includes(w))) : this.rows;
    if (this.order) {
      const {column: {sort}, down} = this.order;
      const by = new Map(this.list.map(r => [r, sort(r)]));
      this.list = [...this.list].sort((a, b) => (down ? -1 : 1) * compare(by.get(a), by.get(b)));
    }
    if (top) this.view.scrollTop = 0;
    this.draw();
  }

  // long reports whether only the rows in view are drawn.
  get long() { return this.rows.length > this.options.whole && !this.printing; }

  row(row, i = -1) {
    const cells = this.columns.map((c, j) => h(j === 0 && c.head !== false ? 'th' : 'td', {
      scope: j === 0 && c.head !== false ? 'row' : null, class: [c.number ? 'number' : '', c.class || ''].join(' ').trim() || null,
    }, c.cell(row)));
    const tick = this.choose && i >= 0 ? h('td', {}, h('input', {type: 'checkbox', 'data-pick': i, 'aria-label': `Choose ${this.choose.name(row)}`, checked: this.chosen.has(this.choose.key(row))})) : null;
    const tr = h('tr', {'aria-rowindex': this.long && i >= 0 ? i + 2 : null}, tick, cells);
    if (i >= 0 && this.options.onrow) this.options.onrow(tr, row);
    return tr;
  }

  draw() {
    const {long, list} = this;
    this.saver.hidden = !this.options.save || list.length === 0;
    this.view.classList.toggle('long', long);
    this.drawn.clear();
    if (long) {
      this.element.setAttribute('aria-rowcount', String(list.length + 1));
      this.above = h('tr', {class: 'space', 'aria-hidden': 'true'}, h('td', {colspan: this.columns.length + (this.choose ? 1 : 0)}));
      this.below = this.above.cloneNode(true);
      replace(this.body, this.above, this.below);
      this.below.firstChild.style.height = `${list.length * (this.height || rowHeight)}px`; // else the view would be as low as what it holds now
      this.window();
    } else {
      this.element.removeAttribute('aria-rowcount');
      replace(this.body, list.map((r, i) => this.row(r, i)));
    }
    if (!list.length) replace(this.body, h('tr', {}, h('td', {colspan: this.columns.length + (this.choose ? 1 : 0), class: 'empty'}, this.rows.length ? 'None has all of these words.' : this.options.empty)));
    this.say();
  }

  // window draws the rows in view and some beyond, and takes those away that have left it; again where
  // heights and widths may be others than before.
  window(again = false) {
    if (!this.long || !this.list.length) return;
    if (again) {
      this.height = 0;
      for (const th of this.heads) th.style.minWidth = '';
    }
    const height = this.height || rowHeight, {scrollTop, clientHeight} = this.view;
    const from = Math.max(0, Math.min(Math.floor(scrollTop / height), this.list.length - 1) - beyond);
    const to = Math.min(this.list.length, Math.ceil((scrollTop + (clientHeight || viewHeight)) / height) + beyond);
    for (const [i, tr] of this.drawn) {
      if (i >= from && i < to) continue;
      if (tr.contains(document.activeElement)) this.view.focus({preventScroll: true});
      tr.remove();
      this.drawn.delete(i);
    }
    for (let i = to - 1, next = this.below; i >= from; i--) {
      if (!this.drawn.has(i)) {
        this.drawn.set(i, this.row(this.list[i], i));
        next.before(this.drawn.get(i));
      }
      next = this.drawn.get(i);
    }
    this.above.firstChild.style.height = `${from * height}px`;
    if (from) this.body.prepend(this.above);
    else this.above.remove();
    this.below.firstChild.style.height = `${(this.list.length - to) * height}px`;
    this.measure(from);
  }

  // measure takes the height of the rows, and keeps columns from becoming narrower when others come
  // into view.
  measure(from) {
    const height = this.drawn.get(from).offsetHeight;
    if (!height) return; // nobody sees it yet
    const first = !this.height;
    this.height = height;
    for (const th of this.heads) th.style.minWidth = `${th.offsetWidth}px`;
    if (first && height !== rowHeight) this.window();
  }

  // pick chooses rows, or does not any more.
  pick(rows, on) {
    for (const r of rows) {
      if (on) this.chosen.add(this.choose.key(r));
      else this.chosen.delete(this.choose.key(r));
    }
    for (const box of this.body.querySelectorAll('[data-pick]')) box.checked = this.chosen.has(this.choose.key(this.list[box.dataset.pick]));
    this.say();
    if (this.choose.changed) this.choose.changed();
  }

  clicked(e) {
    if (!e.target.dataset.pick) return;
    const i = Number(e.target.dataset.pick), from = e.shiftKey ? this.list.findIndex(r => this.choose.key(r) === this.last) : -1;
    this.last = this.choose.key(this.list[i]);
    this.pick(from < 0 ? [this.list[i]] : this.list.slice(Math.min(i, from), Math.max(i, from) + 1), e.target.checked);
  }

  // pressed goes from check box to check box, also to one that is not drawn yet, and with Escape behind
  // all rows.
  pressed(e) {
    if (e.key === 'Escape' && this.long) this.saver.querySelector('summary').focus();
    const step = {ArrowDown: 1, ArrowUp: -1}[e.key];
    if (!step || !e.target.dataset.pick) return;
    e.preventDefault();
    const i = Number(e.target.dataset.pick) + step;
    const box = this.body.querySelector(`[data-pick="${i}"]`);
    if (!box) return;
    box.focus({preventScroll: true});
    box.closest('tr').scrollIntoView({block: 'nearest'});
    this.window(); // now: the next key may come before the browser says that it scrolled
  }

  // say says how many rows there are and how many are chosen, and shows what can be done with them.
  say() {
    const {rows, list, chosen, choose} = this;
    const filtered = list.length < rows.length || this.filter.value;
    const here = choose ? list.filter(r => chosen.has(choose.key(r))).length : 0;
    const text = `${filtered ? `${list.length.toLocaleString('en')} of ` : ''}${count(rows.length, 'row')}${chosen.size ? `, ${chosen.size.toLocaleString('en')} chosen` : ''}${chosen.size > here ? `, ${(chosen.size - here).toLocaleString('en')} of them not shown` : ''}`;
    if (this.said.textContent !== text) replace(this.said, text);
    this.filter.hidden = !this.options.filter || rows.length <= this.options.whole && !this.filter.value;
    this.tools.hidden = !this.long && this.filter.hidden && !(choose && rows.length);
    for (const b of this.actions) b.hidden = !chosen.size;
    if (!choose) return;
    this.all.checked = here > 0 && here === list.length;
    this.all.indeterminate = here > 0 && here < list.length;
  }
}
