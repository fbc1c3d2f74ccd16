// What was read of counters while the console is open, whichever page it shows: readings of
// each port over time, and of all ports together.

import * as api from '../api.js';

const askEvery = 5000; // ms; the service reads a port every 15 s unless it is told otherwise
const restFor = 50; // an answer that took a while is given that many times as long until the next
const kept = 240; // readings of a port that are kept
const portsRead = 1000; // ports that are asked for: of a larger fabric those that send most,
const portsErring = 200; // and beside them those with most errors
const portsFollowed = 1500; // ports whose readings are kept
const apart = 500; // ms between two readings that are two

// latest is the last answer: its ports, when it came, whether there are more ports than
// those, how many of them are those that send most, and why there is none.
export const latest = {ports: [], at: 0, more: false, senders: 0, fault: null};

const rings = new Map(); // readings by port
const totals = []; // of all ports: {at, sends, receives, errors, known}
const watchers = new Set();
let timer = 0; // 0 while nobody has asked
let first = null; // ends with the first answer
let whose = ''; // session that the readings are of

export const keyOf = p => `${p.node}/${p.port}`;

// readings are those of a port, the oldest first: {at, sends, receives, errors}.
export function readings(key) { return rings.get(key) || []; }

export function sums() { return totals; }

// watch calls f after each answer, until the function that it returns is called.
export function watch(f) {
  watchers.add(f);
  return () => watchers.delete(f);
}

// asked begins to ask, unless that has begun, and ends with the first answer. Asking goes on
// when nobody watches, until the session ends.
export async function asked() {
  if (timer && whose !== own()) forget();
  if (!timer) first = turn();
  await first;
}

async function turn() {
  if (whose !== own()) forget();
  whose = own();
  if (!whose) return;
  timer = -1;
  const began = performance.now(), mine = whose;
  try {
    await ask(mine);
  } catch (e) {
    if (mine === whose) latest.fault = e;
    if (e.status === 401 || e.status === 403) {
      if (mine === whose) timer = 0;
      return;
    }
  }
  if (mine !== whose) return; // another session asks
  for (const f of [...watchers]) f();
  timer = setTimeout(turn, Math.max(askEvery, restFor * (performance.now() - began)));
}

// ask reads what there is, of a large fabric the ports that matter.
async function ask(mine) {
  const most = await api.get('/counters', {order: 'sends', limit: portsRead}, {background: true});
  const ports = most.items;
  if (most.next) {
    const known = new Set(ports.map(keyOf));
    const erring = await api.get('/counters', {order: 'errors', limit: portsErring}, {background: true});
    ports.push(...erring.items.filter(p => p.errors && !known.has(keyOf(p))));
  }
  if (mine !== own()) return;
  const senders = Math.min(ports.length, portsRead);
  Object.assign(latest, {ports, at: Date.now(), more: Boolean(most.next), senders, fault: null});
  ports.forEach(take);
  sum(ports.slice(0, senders));
}

const own = () => (api.session() || {}).session || '';

// forget is for the end of a session: who logs in next may be somebody else.
function forget() {
  clearTimeout(timer);
  rings.clear();
  totals.length = 0;
  timer = 0;
  Object.assign(latest, {ports: [], at: 0, more: false, senders: 0, fault: null});
}

function take(p) {
  if (p.fault) return;
  const key = keyOf(p);
  let ring = rings.get(key);
  if (!ring) {
    if (rings.size >= portsFollowed) return;
    rings.set(key, ring = []);
  }
  const at = latest.at - p.age * 1000;
  if (ring.length && at - ring.at(-1).at < apart) return;
  ring.push({at, sends: p.sends, receives: p.receives, errors: p.errors});
  if (ring.length > kept) ring.shift();
}

function sum(ports) {
  const t = {at: latest.at, sends: 0, receives: 0, errors: 0, known: 0};
  for (const p of ports) {
    if (p.fault) continue;
    t.known++;
    t.sends += p.sends || 0;
    t.receives += p.receives || 0;
    t.errors += p.errors;
  }
  if (!t.known) Object.assign(t, {sends: undefined, receives: undefined, errors: undefined});
  totals.push(t);
  if (totals.length > kept) totals.shift();
}
