// End ports by name, GUID and LID: what people write is found here. Nothing of this module
// knows of the page.

const guidBytes = 16; // hexadecimal digits of a GUID

// label is what a port is called: what its node says, and its number where the node has
// several.
export function label(p) {
  if (!p.node) return p.guid;
  return p.several ? `${p.node}:${p.number}` : p.node;
}

// guid is a GUID as the API writes it, of what somebody wrote, or "".
export function guid(text) {
  const digits = text.trim().toLowerCase().replace(/^0x/, '').replace(/[:.-]/g, '');
  return digits.length === guidBytes && /^[0-9a-f]+$/.test(digits) ? `0x${digits}` : '';
}

// index prepares a list of ports, as the API gives it, to be searched. A port that has no
// name is called by its GUID.
export function index(ports) {
  const count = new Map();
  for (const p of ports) count.set(p.node_guid, (count.get(p.node_guid) || 0) + 1);
  const list = ports.map(p => ({...p, several: Boolean(p.node_guid) && count.get(p.node_guid) > 1}));
  const byGUID = new Map(list.map(p => [p.guid, p]));
  const byName = new Map();
  const remember = (name, p) => {
    const key = name.toLowerCase();
    const named = byName.get(key) || [];
    if (!named.includes(p)) byName.set(key, [...named, p]);
  };
  for (const p of list) {
    p.text = [label(p), p.guid, p.lid ? `lid ${p.lid}` : '', p.owner].join(' ').toLowerCase();
    if (!p.node) continue;
    remember(p.node, p);
    remember(label(p), p);
    if (!/:\d+$/.test(label(p))) remember(`${p.node}:${p.number}`, p);
    remember(p.node.split(' ')[0], p);
  }
  return {list, byGUID, byName, more: ports.more};
}

// find lists the ports that have every word of a text in their name, GUID, LID or owner: at
// most that many, and how many there are.
/** @param {any} ports @param {string} text @param {number} [most] @param {(port: any) => boolean} [keep] */
export function find(ports, text, most = 50, keep = () => true) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = [];
  let all = 0;
  for (const p of ports.list) {
    if (!keep(p) || !words.every(w => p.text.includes(w) || String(p.lid) === w)) continue;
    if (hits.length < most) hits.push(p);
    all++;
  }
  return {hits, all};
}

// named is the port that one name means: {port} or {problem}, which says why there is none.
// A GUID that was not found on the fabric is a port too, one that may come.
export function named(ports, text) {
  const name = text.trim();
  const g = guid(name);
  if (g) return {port: ports.byGUID.get(g) || {guid: g, owner: '', found: false, partitions: [], text: g}};
  const hits = ports.byName.get(name.toLowerCase()) || [];
  if (hits.length === 1) return {port: hits[0]};
  if (hits.length > 1) return {problem: `${hits.length} ports have this name: ${hits.slice(0, 4).map(p => `${label(p)} is ${p.guid}`).join(', ')}`};
  if (/^\d+$/.test(name)) {
    const by = ports.list.filter(p => p.lid === Number(name));
    return by.length ? {port: by[0]} : {problem: 'no end port has this LID'};
  }
  const near = name.length > 2 ? find(ports, name, 3).hits : [];
  return {problem: near.length ? `no end port has this name; there is ${near.map(label).join(', ')}` : 'no end port has this name, GUID or LID'};
}

// parse reads a pasted list, one port a line or several with commas between: GUIDs, names or
// LIDs, each with =full or =limited behind it if the membership is to be another than the
// one that is chosen. What stands after # is a remark.
export function parse(ports, text) {
  const found = [], problems = [], seen = new Set();
  text.split(/\r\n|\r|\n/).forEach((whole, i) => {
    for (const part of whole.replace(/#.*$/, '').split(/[,;\t]/)) {
      for (const entry of apart(part)) {
        const [, name, membership] = /^(.*?)(?:\s*=\s*(\w+))?$/.exec(entry);
        const problem = text => problems.push({line: i + 1, text: entry, problem: text});
        if (membership && !['full', 'limited', 'both'].includes(membership)) {
          problem(`want =full, =limited or =both, not =${membership}`);
          continue;
        }
        const one = named(ports, name);
        if (one.problem) problem(one.problem);
        else if (!seen.has(one.port.guid)) {
          seen.add(one.port.guid);
          found.push({port: one.port, membership: membership || ''});
        }
      }
    }
  });
  return {found, problems};
}

// apart takes GUIDs with spaces between apart; a name may have spaces in it.
function apart(part) {
  const words = part.trim().split(/\s+/).filter(Boolean);
  if (words.length > 1 && words.every(w => guid(w.split('=')[0]))) return words;
  const whole = part.trim().replace(/^["']|["']$/g, '');
  return whole ? [whole] : [];
}

// sayer makes a function that puts the name of a port beside its GUID in a sentence, unless
// the name is before it.
export function sayer(ports) {
  return text => text.replace(/0x[0-9a-f]{16}/g, (g, at) => {
    const p = ports.byGUID.get(g);
    return p && p.node && text[at - 1] !== '(' ? `${label(p)} (${g})` : g;
  });
}
