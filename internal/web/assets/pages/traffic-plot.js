// Small plots of numbers over time, with the same in words and in a table.

import {h, stamp, svg, table} from '../dom.js';
import {ago} from '../parts/controls.js';
import {pictureSaver} from '../save.js';

// spark is a plot without axes, for a cell of a table whose other cells have the numbers.
export function spark(points, name) {
  const box = {w: 120, h: 24};
  const most = ceiling(Math.max(...points.map(p => p[name] ?? 0), 1));
  return svg('svg', {class: 'spark', viewBox: `0 0 ${box.w} ${box.h}`, width: box.w, height: box.h, 'aria-hidden': 'true', focusable: 'false'},
    paths(points, name, most, box, 1).map(d => svg('path', {d, class: 'line first'})));
}

// ceiling is a round number above a value, for the top of a plot.
function ceiling(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1.2, 1.5, 2, 3, 4, 5, 6, 8, 10, 12].map(f => f * unit).find(x => x >= value * 1.05);
}

// paths are the lines through the points whose value is known; one that is not breaks them.
function paths(points, name, most, box, pad) {
  if (!points.length) return [];
  const from = points[0].at, span = Math.max(points.at(-1).at - from, 1);
  const out = [];
  let d = '';
  for (const p of points) {
    if (p[name] === undefined || p[name] === null) {
      if (d) out.push(lone(d));
      d = '';
      continue;
    }
    const x = points.length === 1 ? box.w - pad : pad + (p.at - from) / span * (box.w - 2 * pad);
    const y = box.h - pad - p[name] / most * (box.h - 2 * pad);
    d += `${d ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
  }
  if (d) out.push(lone(d));
  return out;
}

// lone makes a point that has no neighbour visible.
function lone(d) { return d.includes('L') ? d : `${d}m-3 0h6`; }

// plot is a figure: series are {name, title}, points {at, ...}, text(value) prints a value.
export function plot(title, points, series, text) {
  const box = {w: 600, h: 140};
  const values = points.flatMap(p => series.map(s => p[s.name])).filter(v => v !== undefined && v !== null);
  if (!values.length) return h('figure', {class: 'chart'}, h('figcaption', {}, title), h('p', {class: 'hint'}, 'Nothing is known yet: wait for the next reading.'));
  const most = ceiling(Math.max(...values, 1));
  const last = s => { const p = points.findLast(x => x[s.name] !== undefined && x[s.name] !== null); return p ? text(p[s.name]) : 'not known'; };
  const words = `${title}, from ${ago(points[0].at)} ago to ${ago(points.at(-1).at)} ago; the highest is ${text(Math.max(...values))}; last: ${series.map(s => `${s.title} ${last(s)}`).join(', ')}.`;
  const whole = svg('svg', {viewBox: `0 0 ${box.w} ${box.h}`, role: 'img', 'aria-label': words, preserveAspectRatio: 'none', focusable: 'false'},
    [0.25, 0.5, 0.75, 1].map(f => svg('path', {d: `M0 ${(box.h - f * (box.h - 6) - 3).toFixed(1)}H${box.w}`, class: 'grid'})),
    series.map((s, i) => paths(points, s.name, most, box, 3).map(d => svg('path', {d, class: `line ${i ? 'second' : 'first'}`}))));
  return h('figure', {class: 'chart'}, h('figcaption', {}, title),
    h('div', {class: 'axes'}, h('span', {class: 'most', 'aria-hidden': 'true'}, text(most)), whole,
      h('div', {class: 'times', 'aria-hidden': 'true'}, h('span', {}, `${ago(points[0].at)} ago`), h('span', {}, 'now'))),
    h('p', {class: 'legend'}, series.map((s, i) => h('span', {}, svg('svg', {viewBox: '0 0 30 8', width: 30, height: 8, 'aria-hidden': 'true'}, svg('path', {d: 'M0 4H30', class: `line ${i ? 'second' : 'first'}`})), ` ${s.title}: ${last(s)} `))),
    pictureSaver(`Plot: ${title}`, whole, [`${title}, up to ${text(most)}`, `${series.map(s => s.title).join(', and dashed ')}; ${stamp(new Date(points[0].at))} to ${stamp(new Date(points.at(-1).at))}`]),
    h('details', {}, h('summary', {}, 'As a table'), table(title, [
      {title: 'When', cell: p => stamp(new Date(p.at))},
      ...series.map(s => ({title: s.title, number: true, cell: p => p[s.name] === undefined || p[s.name] === null ? 'not known' : text(p[s.name])})),
    ], [...points].reverse(), {hideCaption: true})));
}
