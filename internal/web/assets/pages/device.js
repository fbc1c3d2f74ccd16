// What is known of a device and of one of its ports: in words first, and as attributes
// beside them. It also lets the provider take a switch out of service.

import {before, button, facts, field, h, link, mark, notify, bytes, replace, table, time, toHash} from '../dom.js';
import * as api from '../api.js';
import {drain, undrain} from '../parts/drain.js';
import {faultWords} from './traffic-words.js';

const countersMost = 255; // ports of a device

// devicePanel shows a device by its node GUID, and a port of it if one is named. page has
// the app, and keep, which takes what was chosen. It returns what reads it again.
export function devicePanel(place, guid, port, page) {
  let chosen = port;
  let turn = 0;
  const read = async first => {
    const mine = ++turn;
    if (first) replace(place, h('h2', {tabindex: '-1'}, guid), h('p', {class: 'hint'}, 'Reading …'));
    try {
      const device = await api.item(`/nodes/${guid}`, {}, {background: !first});
      if (mine !== turn || !place.isConnected) return;
      show(device, first);
    } catch (e) {
      if (mine === turn) replace(place, h('h2', {}, guid), h('p', {class: 'fault', role: 'alert'}, e.message));
    }
  };
  const show = (device, first) => {
    const portPlace = h('div', {class: 'port'});
    const open = new Set([...place.querySelectorAll('details[open]')].map(d => d.dataset.name));
    const focused = place.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.port : undefined;
    replace(place, h('h2', {tabindex: '-1'}, device.description || device.guid), h('ul', {class: 'words'}, device.words.map(w => h('li', {}, w))),
      deviceFacts(device), actions(device, page, read),
      portsTable(device, n => { chosen = n; page.keep({port: n}, true); portDetails(portPlace, device, n, open, page); }), portPlace);
    if (chosen !== undefined) portDetails(portPlace, device, chosen, open, page);
    if (focused) place.querySelector(`[data-port="${focused}"]`)?.focus();
    else if (first && place.contains(document.activeElement)) place.querySelector('h2').focus();
  };
  read(true);
  return () => read(false);
}

function deviceFacts(d) {
  return facts([['Node GUID', h('code', {}, d.guid)], ['Type', d.type], ['Owner', d.owner], ['Level', d.level || undefined], ['Vendor', d.vendor_id && h('code', {}, d.vendor_id)], ['Device', d.device_id && h('code', {}, d.device_id)], ['Ports', String(d.ports.filter(p => p.number).length)], ['Read', time(d.read_at)]]);
}

// actions are what can be done with a device: for a host why it can or cannot talk, for a
// switch the drain.
function actions(device, page, read) {
  const end = device.ports.find(p => p.guid && p.lid);
  if (device.type !== 'switch') {
    return h('div', {class: 'actions'}, end ? link(toHash('why', {from: end.guid}), 'Whom can it talk with?') : null,
      !page.app.session.read_only && end ? link(toHash('change', {port: end.guid}), 'Change its partitions') : null);
  }
  if (!page.app.provider || page.app.session.read_only) return null;
  return h('div', {class: 'actions'}, page.isDrained(device.guid) ? button('Back into service …', () => change(undrain, device, read)) : button('Take out of service …', () => change(drain, device, read)));
}

// change drains or undrains a switch.
async function change(how, device, read) {
  const why = field('Reason, for the history', h('input', {type: 'text', maxlength: '500'}));
  const changed = await how(device.guid, device.description, why, true);
  if (!changed) return;
  notify(changed.words.join(' '), 'good');
  read(false);
}

function portsTable(device, choose) {
  return table('Ports', [
    {title: 'Port', cell: p => h('button', {type: 'button', class: 'plain', 'data-port': p.number, onclick: () => choose(p.number)}, String(p.number)), sort: p => p.number},
    {title: 'State', cell: p => p.number === 0 ? 'its own end port' : mark(p.problem ? 'bad' : p.state === 'Active' ? 'good' : 'plain', p.state || 'not read')},
    {title: 'At the other end', cell: p => (p.peer ? `${p.peer.name} port ${p.peer.port}` : '')},
    {title: 'Width, speed', cell: p => [p.width, p.speed].filter(Boolean).join(' ')},
    {title: 'Note', cell: p => p.problem || ''},
  ], device.ports);
}

// counters are what the manager read last of the performance counters of a port.
async function counters(guid, number) {
  let list;
  try {
    list = (await api.get('/counters', {node: guid, limit: countersMost}, {background: true})).items;
  } catch (e) {
    return h('p', {class: 'hint'}, e.message);
  }
  const port = list.find(p => p.port === number);
  if (!port) return h('p', {class: 'hint'}, 'The counters of this port are not read.');
  if (port.fault) return h('p', {}, mark('unknown', `not known: ${faultWords(port.fault)}`));
  const rate = n => (n === undefined ? 'not known yet' : `${bytes(n)}/s`);
  return facts([['Read', time(before(port.age * 1000))], ['Sends', rate(port.sends)], ['Receives', rate(port.receives)],
    ...Object.entries(port.counters).map(([name, n]) => [name, n.toLocaleString('en') + (port.stuck && port.stuck.includes(name) ? ' or more' : '')])]);
}

// portDetails shows a port whole.
async function portDetails(place, device, number, open, page) {
  replace(place, h('h3', {tabindex: '-1'}, `Port ${number}`), h('p', {class: 'hint'}, 'Reading …'));
  let port;
  try {
    port = await api.item(`/nodes/${device.guid}/ports/${number}`, {}, {background: true});
  } catch (e) {
    replace(place, h('h3', {}, `Port ${number}`), h('p', {class: 'fault', role: 'alert'}, e.message));
    return;
  }
  const details = (name, content) => h('details', {'data-name': name, open: open.has(name)}, h('summary', {}, name), content);
  replace(place, h('h3', {tabindex: '-1'}, `Port ${number}`), h('ul', {class: 'words'}, port.words.map(w => h('li', {}, w))),
    port.unread && port.unread.length ? h('p', {}, mark('unknown', `not read: ${port.unread.join(', ')}`)) : null,
    table('P_Key table', [
      {title: 'Index', cell: k => String(k.index), number: true}, {title: 'P_Key', cell: k => h('code', {}, k.pkey)},
      {title: 'Membership', cell: k => (k.full ? 'full' : 'limited')}, {title: 'Partition', cell: k => k.partition || ''},
    ], port.pkeys || [], {empty: 'It holds no keys.'}),
    page.app.provider && number > 0 ? details('Counters', await counters(device.guid, number)) : null,
    (port.attributes || []).map(a => details(a.modifier ? `${a.name} ${a.modifier}` : a.name, facts(a.fields.map(f => [f.name, h('code', {}, f.value)])))));
}
