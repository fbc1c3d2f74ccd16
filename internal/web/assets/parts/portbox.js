// A box in which a port is chosen by name, GUID or LID.

import {field, h, plain} from '../dom.js';
import * as api from '../api.js';
import {combo} from './combo.js';
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
/** @param {string} title @param {any} ports @param {(port: any) => void} [picked] */
export function portBox(title, ports, picked = () => {}) {
  const input = h('input', {type: 'search', maxlength: '64'});
  const box = field(title, input, 'Name, GUID or LID of an end port.');
  let chosen = null;
  const choices = combo(input, title, text => find(ports, text, shown).hits.map(p => ({port: p, name: label(p), hint: `${p.guid}${p.lid ? `, LID ${p.lid}` : ''}${p.owner ? `, ${p.owner}` : ''}`})), hit => {
    box.set(hit.port.guid);
    box.fault('');
    picked(hit.port);
  });
  input.after(choices.list);
  input.addEventListener('input', () => { chosen = null; });
  box.classList.add('portbox');
  // value is the GUID of what is meant; what no port is called is given as it was typed, and
  // the service says what it does not understand.
  box.value = () => {
    const text = input.value.trim();
    if (chosen || !text) return chosen ? chosen.guid : '';
    const one = named(ports, text);
    return one.port ? one.port.guid : text;
  };
  box.set = text => {
    chosen = text ? named(ports, text).port || null : null;
    input.value = chosen ? plain(label(chosen)) : text || '';
  };
  return box;
}
