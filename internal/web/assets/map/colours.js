// What the colours of the map say. The hues are those of Okabe and Ito, which people with
// any kind of colour blindness tell apart; a word in the legend and letters or signs on the
// map say the same.

const hues = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b8a800'];
const shades = [0, 0.35, -0.35]; // towards white or black
const nobody = '#8a949e';
const several = '#6b4fa0';

// mixed is a colour of the form #rrggbb, moved towards white (share > 0) or black.
function mixed(colour, share) {
  const to = share > 0 ? 255 : 0, s = Math.abs(share);
  const part = i => Math.round(parseInt(colour.slice(i, i + 2), 16) * (1 - s) + to * s);
  return `#${[1, 3, 5].map(i => part(i).toString(16).padStart(2, '0')).join('')}`;
}

// ownerColour is the colour of the owner with an index: 21 of them differ.
function ownerColour(i) {
  if (i === -1) return nobody;
  if (i === -2) return several;
  return mixed(hues[i % hues.length], shades[Math.floor(i / hues.length) % shades.length]);
}

const states = {active: '#5b83a6', inactive: '#b8a800', down: '#d55e00', drained: '#e69f00', fenced: '#cc79a7', unread: nobody, missing: '#d55e00'};
const hollow = new Set(['unread', 'unknown', 'missing']);
const verdicts = {'kept-apart': '#3f8f6b', unknown: nobody, unguarded: '#b8a800', unenforced: '#e69f00', violated: '#d55e00'};
const loads = ['#c6d3df', '#9ecae1', '#56b4e9', '#0072b2', '#e69f00', '#d55e00']; // from nothing to most

// modes are what the map can be coloured by.
export const modes = [['party', 'Who shares keys'], ['owner', 'Owner'], ['state', 'State'], ['verdict', 'Verdict'], ['load', 'Load of cables'], ['errors', 'Errors on cables']];

// onCables are the modes in which colours are those of cables.
export const onCables = new Set(['load', 'errors']);

// classes are the classes of the nodes of a map by one mode: {of: Int16Array by node, list:
// [{key, name, colour, code, hollow}]}.
export function classes(map, mode) {
  const n = map.nodes.guid.length;
  const of = new Int16Array(n);
  const {list, add} = counted();
  const names = mode === 'party' ? map.parties.map(plain) : map.owners;
  const codes = mode === 'party' || mode === 'owner' ? codesOf(names) : [];
  for (let i = 0; i < n; i++) {
    if (mode === 'owner' || mode === 'party') of[i] = add(ownerEntry(map, mode, i, names, codes));
    else if (onCables.has(mode)) of[i] = add({key: 'device', name: 'devices', colour: 'var(--switch)'});
    else {
      const words = mode === 'state' ? map.states : map.verdicts;
      const key = words[map.nodes[mode][i]] ?? 'unknown';
      of[i] = add({key, name: key.replace('-', ' '), colour: (mode === 'state' ? states : verdicts)[key] ?? nobody, hollow: hollow.has(key), code: sign(key)});
    }
  }
  return {of, list};
}

// cableClasses are those of the cables of a map; load is the answer of GET /map/load, or null.
export function cableClasses(map, mode, load) {
  const of = new Int16Array(map.links.a.length);
  const {list, add} = counted();
  const column = load ? load[mode === 'load' ? 'percent' : 'errors'] : [];
  for (let l = 0; l < of.length; l++) of[l] = add(cableEntry(mode, column[l] ?? -1));
  return {of, list};
}

// counted is a list of classes that counts what is added to it: add is told an entry, and says where
// it is in the list.
function counted() {
  const list = [], at = new Map();
  return {list, add: entry => {
    if (!at.has(entry.key)) {
      at.set(entry.key, list.length);
      list.push({hollow: false, code: '', count: 0, ...entry});
    }
    const i = at.get(entry.key);
    list[i].count++;
    return i;
  }};
}

function sign(key) { return {inactive: '!', down: '✕', missing: '✕', drained: '–', fenced: '#', unread: '?', unknown: '?', unenforced: '!', unguarded: '!', violated: '✕'}[key] ?? ''; }

// plain is the name of a party without what all have in common.
function plain(name) { return name.replace(/^ports in /, ''); }

// ownerEntry is the class of a device by its owner or its party.
function ownerEntry(map, mode, i, names, codes) {
  const owner = map.nodes[mode][i];
  if (map.nodes.type[i] === 1) return {key: 'switch', name: 'switches', colour: 'var(--switch)'};
  if (owner === -1) return {key: 'nobody', name: mode === 'owner' ? 'nobody' : 'not known', colour: nobody, hollow: mode === 'party'};
  if (owner === -2) return {key: 'several', name: 'several', colour: several, code: '+'};
  return {key: `${mode} ${map[mode === 'owner' ? 'owners' : 'parties'][owner]}`, name: names[owner], colour: ownerColour(owner), code: codes[owner]};
}

// codesOf are one or two letters for each owner, none twice as long as that can be.
function codesOf(owners) {
  const taken = new Set();
  return owners.map(name => {
    const letters = name.replace(/[^A-Za-z0-9]/g, '') || '·';
    const tries = [letters[0], ...[...letters.slice(1)].map(c => letters[0] + c)].map(x => x[0].toUpperCase() + x.slice(1));
    const code = tries.find(c => !taken.has(c)) ?? tries[0];
    taken.add(code);
    return code;
  });
}

const notRead = {key: 'not read', name: 'not read', colour: nobody, hollow: true, order: -1};

// cableEntry is the class of cables that carry percent of their rate, or have so many errors; -1 for not read.
export function cableEntry(mode, value) { return mode === 'load' ? loadEntry(value) : errorEntry(value); }

function loadEntry(percent) {
  if (percent < 0) return notRead;
  const step = Math.ceil(percent / 20);
  return {key: `load ${step}`, name: step === 0 ? 'carries nothing' : `${20 * step - 19} to ${20 * step} % of its rate`, colour: loads[step], order: step};
}

function errorEntry(errors) {
  if (errors < 0) return notRead;
  const step = errors === 0 ? 0 : errors < 100 ? 1 : 2;
  return {key: `errors ${step}`, name: ['no errors', '1 to 99 errors', '100 errors or more'][step], colour: [loads[0], loads[4], loads[5]][step], order: step};
}
