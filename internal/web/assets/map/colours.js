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
export const modes = [['party', 'Who shares keys'], ['owner', 'Owner'], ['state', 'State'], ['verdict', 'Verdict'], ['load', 'Load']];

// classes are the classes of the nodes of a map by one mode: {of: Int16Array by node, list:
// [{key, name, colour, code, hollow}]}. load has what each node sends, in bytes a second.
export function classes(map, mode, load = new Map()) {
  const n = map.nodes.guid.length;
  const of = new Int16Array(n);
  const list = [], at = new Map();
  const add = entry => {
    if (!at.has(entry.key)) {
      at.set(entry.key, list.length);
      list.push({hollow: false, code: '', count: 0, ...entry});
    }
    const i = at.get(entry.key);
    list[i].count++;
    return i;
  };
  const names = mode === 'party' ? map.parties.map(plain) : map.owners;
  const codes = mode === 'party' || mode === 'owner' ? codesOf(names) : [];
  const most = Math.max(1, ...load.values());
  for (let i = 0; i < n; i++) {
    if (mode === 'owner' || mode === 'party') of[i] = add(ownerEntry(map, mode, i, names, codes));
    else if (mode === 'load') of[i] = add(loadEntry(load.get(map.nodes.guid[i]), most));
    else {
      const words = mode === 'state' ? map.states : map.verdicts;
      const key = words[map.nodes[mode][i]] ?? 'unknown';
      of[i] = add({key, name: key.replace('-', ' '), colour: (mode === 'state' ? states : verdicts)[key] ?? nobody, hollow: hollow.has(key), code: sign(key)});
    }
  }
  return {of, list};
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

function loadEntry(sends, most) {
  if (sends === undefined) return {key: 'not read', name: 'not read', colour: nobody, hollow: true, code: ''};
  const step = sends <= 0 ? 0 : Math.min(loads.length - 1, 1 + Math.floor((loads.length - 1) * sends / most * 0.9999));
  const from = Math.round(100 * (step - 1) / (loads.length - 1)), to = Math.round(100 * step / (loads.length - 1));
  return {key: `load ${step}`, name: step === 0 ? 'sends nothing' : `${from} to ${to} % of the most`, colour: loads[step], order: step};
}
