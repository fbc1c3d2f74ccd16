// Traffic: who sends most, which ports have errors, and all counters of a port.

import {before, count, facts, h, link, mark, bytes, remember, replace, table, time, toHash} from '../dom.js';
import {ago, choice, search, section, steady} from '../parts/controls.js';
import {asked, keyOf, latest, readings, sums, watch} from './traffic-samples.js';
import {plot, spark} from './traffic-plot.js';
import {faultWords, meaning} from './traffic-words.js';

const portsWhole = 25; // ports that are drawn whole
const oldAfter = 60; // s after which a reading is shown as old

export default {name: 'traffic', title: 'Traffic', provider: true, render};

const rate = n => n === undefined || n === null ? 'not known' : `${bytes(n)}/s`;

async function render(main, params) {
  await asked();
  const show = params.node ? onePort(main, params) : overview(main, params);
  const turn = () => {
    if (latest.fault && latest.fault.reason === 'conflict') unread(main);
    else if (latest.fault && !latest.at) replace(main, h('p', {class: 'fault', role: 'alert'}, latest.fault.message));
    else steady(main, show);
  };
  turn();
  return watch(turn);
}

// unread says how counters come to be read.
function unread(main) {
  replace(main, section('Counters are not read', 'unread',
    h('p', {'data-unread': 'true'}, latest.fault.message),
    h('p', {}, 'Start the service with ', h('code', {}, '--metrics 127.0.0.1:9316'), ', and with ', h('code', {}, '--counters-hca'), ' to read the ports of hosts as well.')));
}

function overview(main, params) {
  const set = {order: params.order === 'errors' || params.order === 'place' ? params.order : 'sends', text: params.text || ''};
  const together = h('div', {});
  const note = h('p', {class: 'hint', role: 'status'});
  const list = table('Ports', columns(), [], {hideCaption: true, whole: portsWhole, filter: false, empty: 'No port: none was read yet, or none is like this. Only the manager that is master reads counters.', onrow: (tr, p) => { tr.dataset.port = keyOf(p); tr.dataset.errors = p.errors; }});
  const order = (a, b) => set.order === 'errors' ? b.errors - a.errors : set.order === 'sends' ? (b.sends ?? -1) - (a.sends ?? -1) : 0;
  const show = () => {
    const part = set.text.trim().toLowerCase();
    const found = latest.ports.filter(p => !part || `${p.name} ${p.name}:${p.port} ${p.node} ${p.peer || ''}`.toLowerCase().includes(part));
    found.sort((a, b) => order(a, b) || (a.name < b.name ? -1 : a.name > b.name ? 1 : a.port - b.port));
    list.update(found);
    replace(note, count(found.length, 'port'), latest.more ? ' of those that send most or have most errors; there are more' : '', latest.fault ? `. What is shown is old: ${latest.fault.message}` : '');
    all(together);
  };
  const changed = (name, value, push) => { set[name] = value; remember('traffic', {[name]: value}, push); show(); };
  replace(main, section('Together', 'together', together),
    section('Ports', 'ports', h('div', {class: 'row filters'},
      choice('First', [['sends', 'those that send most'], ['errors', 'those with most errors'], ['place', 'by name']], set.order, v => changed('order', v, true)),
      search('Search', set.text, v => changed('text', v), 'Name, name:port, GUID, or what is at the other end.')), note, list));
  return show;
}

function columns() {
  return [
    {title: 'Port', cell: p => link(toHash('traffic', {node: p.node, port: p.port}), `${p.name || p.node}:${p.port}`), sort: p => `${p.name || p.node}:${p.port}`},
    {title: 'Cable to', cell: p => p.peer || 'nothing', sort: p => p.peer || ''},
    {title: 'Sends', number: true, cell: p => rate(p.sends), sort: p => p.sends ?? -1},
    {title: 'Over time', cell: p => spark(readings(keyOf(p)), 'sends')},
    {title: 'Receives', number: true, cell: p => rate(p.receives), sort: p => p.receives ?? -1},
    {title: 'Errors', number: true, cell: p => p.fault ? 'not known' : p.errors ? mark('bad', p.errors.toLocaleString('en')) : '0', sort: p => p.errors},
    {title: 'Read', cell: p => state(p)},
  ];
}

// state says when a port was read, and what is wrong about that.
function state(p) {
  if (p.fault) return mark('unknown', 'not known');
  const at = time(before(Date.now() - latest.at + p.age * 1000));
  return p.age > oldAfter ? mark('warn', ['old: ', at]) : at;
}

// all is the sum of all ports, and why some are not known.
function all(place) {
  const why = new Map();
  for (const p of latest.ports) if (p.fault) why.set(p.fault, (why.get(p.fault) || 0) + 1);
  const last = sums().at(-1);
  const bad = latest.ports.filter(p => p.errors > 0).length;
  replace(place,
    facts([
      ['Ports read', last ? `${last.known} of ${latest.senders}${latest.more ? ' that send most' : ''}` : undefined],
      ['Sent together', last ? rate(last.sends) : undefined], ['Ports with errors', bad ? mark('bad', String(bad)) : '0'],
    ]),
    [...why].map(([fault, n]) => h('p', {'data-fault': fault}, mark('unknown', count(n, 'port')), ` not known: ${faultWords(fault)}.`)),
    last && last.known ? plot(latest.more ? `What the ${latest.senders} ports that send most send` : 'What all ports send', sums(), [{name: 'sends', title: 'sent'}], rate) : null,
    h('p', {class: 'hint'}, 'The plots begin when this page is first opened, go on while the console shows other pages, and are gone when the tab is closed.'));
}

// onePort is a port whole.
function onePort(main, params) {
  const key = `${params.node}/${params.port}`;
  const box = section('Port', 'port');
  const back = h('p', {class: 'actions'}, link(toHash('traffic'), 'All ports'), link(toHash('fabric', {node: params.node}), 'On the map'));
  replace(main, back, box);
  return () => {
    const p = latest.ports.find(x => keyOf(x) === key);
    box.firstChild.textContent = p ? `${p.name || p.node}, port ${p.port}` : 'Port';
    if (!p) {
      replace(box.body, h('p', {}, 'There is no reading of this port: it was never connected, or it is not among those that send most or have most errors.'));
      return;
    }
    const points = readings(key);
    const figure = plot('What it sends and receives', points, [{name: 'sends', title: 'sends'}, {name: 'receives', title: 'receives'}], rate);
    replace(box.body, facts([
      ['Node', h('code', {}, p.node)], ['Cable to', p.peer || 'nothing'], ['Read', state(p)],
      ['Sends', rate(p.sends)], ['Receives', rate(p.receives)], ['Errors in all', p.fault ? 'not known' : p.errors],
      ['More errors since', points.length > 1 ? `${(points.at(-1).errors - points[0].errors).toLocaleString('en')} in ${ago(points[0].at)}` : undefined],
    ]), p.fault ? h('p', {}, mark('unknown', 'not known'), ` ${faultWords(p.fault)}.`) : null, figure, counters(p));
  };
}

function counters(p) {
  const stuck = new Set(p.stuck || []);
  return table('Counters', [
    {title: 'Counter', cell: c => h('span', {class: 'mono'}, c[0]), sort: c => c[0]},
    {title: 'Value', number: true, cell: c => `${c[1] > Number.MAX_SAFE_INTEGER ? 'about ' : ''}${c[1].toLocaleString('en')}`, sort: c => c[1]},
    {title: 'What it counts', cell: c => [meaning(c[0]), stuck.has(c[0]) ? [' ', mark('warn', 'at the highest value it has room for: there may be more')] : null]},
  ], Object.entries(p.counters).sort(), {empty: 'No counter is known.', onrow: (tr, c) => { tr.dataset.counter = c[0]; }});
}
