// The API of the service, as the console uses it: /api/v1 of the address that served the page.

import {serviceTime} from './dom.js';
import * as tabs from './tabs.js';

const base = '/api/v1';
const kept = 'ibwarden-session'; // in the storage of this tab and origin
const old = {why: ''}; // why what was read last may be old
const pageSize = 1000;
const sessionOver = 'Your session has ended: log in again.';

/** @typedef {{query?: object, body?: any, headers?: Object<string, string>, secret?: string, signal?: AbortSignal, background?: boolean}} Asking how a request is made */
/** @typedef {any[] & {etag?: string, more?: boolean}} List a list that was read; more: the service has more of it */

/** @type {(why: string) => void} */
let ended = () => {};
/** @type {(why: string) => void} */
let aged = () => {};

// onEnd is called when the session has ended, with why, onAge when what is read begins or ceases to
// be old.
export function onEnd(f) { ended = f; }
export function onAge(f) { aged = f; }

// Fault is an answer that is an error: status, reason, and the fields at fault.
export class Fault extends Error {
  constructor(problem, status) {
    const fields = (problem.errors || []).map(e => `${e.field}: ${e.reason}`);
    const text = problem.detail || problem.title || `the service answered with status ${status}`;
    super(fields.length && problem.detail === 'validation failed' ? fields.join('; ') : text);
    this.status = status;
    this.reason = problem.reason || '';
    this.fields = problem.errors || [];
  }
}

export function session() {
  try { return JSON.parse(sessionStorage.getItem(kept)) || null; } catch { return null; }
}

function keep(s) {
  if (s) sessionStorage.setItem(kept, JSON.stringify(s));
  else sessionStorage.removeItem(kept);
}

// login begins a session with a token or a code of one use.
export async function login(secret) {
  const answer = await exchange('POST', '/session', {secret});
  keep(await answer.json());
  return session();
}

// logout ends the session here, in the other tabs and at the service.
export async function logout() {
  const own = session();
  keep(null);
  if (!own) return;
  tabs.ended(own.session, true);
  await end(own);
}

async function end(s) {
  try { await exchange('DELETE', '/session', {secret: s.session}); } catch { /* it has ended anyway */ }
}

// join takes over the session of the other tabs of this browser, if they are all of one caller: of
// several none is taken, whoever may do more. It answers why there is none.
export async function join() {
  const found = await tabs.ask();
  if (session()) return ''; // somebody has logged in meanwhile
  if (new Set(found.map(s => JSON.stringify([s.provider, s.tenant, s.name, s.read_only]))).size > 1) return 'Other tabs of this browser are logged in as different callers. Log in here as the one you want to be.';
  if (found.length) keep(found[0]);
  return '';
}

tabs.share(session, ({session: over, all}) => {
  const own = session();
  if (!own || own.session !== over && !all) return;
  keep(null);
  if (own.session !== over) end(own);
  ended(all ? 'You have logged out in another tab.' : sessionOver);
});

/** @param {string} method @param {string} path @param {Asking} asking */
async function exchange(method, path, {query, body, headers = {}, secret, signal, background = false} = {}) {
  const url = new URL(base + path, location.origin);
  for (const [k, v] of Object.entries(query || {})) if (v !== undefined && v !== null && v !== '') url.searchParams.append(k, v);
  const own = session();
  /** @type {Object<string, string>} */
  const send = {Accept: 'application/json', ...headers};
  if (secret || own) send.Authorization = `Bearer ${secret || own.session}`;
  if (background) send['Ibwarden-Background'] = 'true';
  if (body !== undefined) send['Content-Type'] = 'application/json';
  let answer;
  try {
    answer = await fetch(url, {method, headers: send, body: body === undefined ? undefined : JSON.stringify(body), signal, credentials: 'omit', cache: 'no-store', redirect: 'error'});
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw new Fault({detail: 'the service does not answer: it may have stopped, or the way to it is cut', reason: 'unreachable'}, 0);
  }
  if (answer.headers.get('Date')) serviceTime(answer.headers.get('Date'));
  const why = answer.headers.get('Ibwarden-Old') || '';
  if (answer.ok && method === 'GET' && why !== old.why) {
    old.why = why;
    aged(why);
  }
  if (answer.ok || answer.status === 304) return answer;
  let problem = {};
  try { problem = await answer.json(); } catch { /* no problem document */ }
  if (answer.status === 401 && own && !secret && (session() || {}).session === own.session) {
    keep(null);
    tabs.ended(own.session);
    ended(sessionOver);
  }
  throw new Fault(problem, answer.status);
}

// get is one answer. options: query, signal, background (nobody pressed anything: it does
// not keep the session alive).
/** @param {string} path @param {object} [query] @param {Asking} [options] */
export async function get(path, query, options = {}) { return read(await exchange('GET', path, {query, ...options})); }

async function read(answer) {
  const body = await answer.json();
  Object.defineProperty(body, 'etag', {value: answer.headers.get('ETag'), enumerable: false});
  return body;
}

// fresh is an answer, or null where it is still the one with an ETag.
export async function fresh(path, query, etag) {
  const answer = await exchange('GET', path, {query, headers: etag ? {'If-None-Match': etag} : {}, background: true});
  return answer.status === 304 ? null : read(answer);
}

// item is the object of an answer about one.
/** @param {string} path @param {object} [query] @param {Asking} [options] */
export async function item(path, query, options) { return (await get(path, query, options)).item; }

// all is a whole list, page by page, at most that many items; its etag is that of the first
// page, so that what has changed since is noticed in a write.
/** @param {string} path @param {object} [query] @param {Asking & {most?: number}} [options] @returns {Promise<List>} */
export async function all(path, query = {}, {most = 20000, ...options} = {}) {
  /** @type {List} */
  const items = [];
  let cursor = '';
  do {
    const page = await get(path, {limit: Math.min(pageSize, most), ...query, cursor}, options);
    if (!cursor) Object.defineProperty(items, 'etag', {value: page.etag, enumerable: false});
    items.push(...page.items);
    cursor = page.next || '';
  } while (cursor && items.length < most);
  items.more = Boolean(cursor);
  return items;
}

// write changes something: method, path, body; options: query, why (the reason), dryRun,
// wait ('stored' or 'proved'), ifMatch, ifNoneMatch, repeat (the key under which a repeated
// request is known).
/** @param {string} method @param {string} path @param {any} [body]
 * @param {{query?: object, why?: string, dryRun?: boolean, wait?: string, ifMatch?: string, ifNoneMatch?: string, repeat?: string}} [terms] */
export async function write(method, path, body, {query = {}, why, dryRun, wait, ifMatch, ifNoneMatch, repeat} = {}) {
  const headers = {};
  if (why) headers.Why = headerText(why);
  if (ifMatch) headers['If-Match'] = ifMatch;
  if (ifNoneMatch) headers['If-None-Match'] = ifNoneMatch;
  if (repeat) headers['Idempotency-Key'] = repeat;
  const answer = await exchange(method, path, {body, headers, query: {...query, dry_run: dryRun ? 'true' : undefined, wait}});
  return answer.status === 204 ? {} : answer.json();
}

// headerText is a text as it can stand in a header, which a browser takes byte by byte: those of
// UTF-8, with a blank in the place of each control character.
function headerText(text) { return String.fromCharCode(...new TextEncoder().encode(text.replace(/[\x00-\x1f\x7f]/g, ' '))); }

// repeatKey is a key for one change, however often it is sent.
export function repeatKey() { return crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random().toString(36).slice(2)}`; }

// events calls f with each event as it happens, those that are kept first, until stop() of
// what it returns. A stream that breaks is taken up again after the last event seen; state
// is called with 'open' or why it is not.
/** @param {(event: any) => void} f @param {(state: string) => void} [state] */
export function events(f, state = () => {}) {
  const control = new AbortController();
  let last = '';
  (async () => {
    let pause = 500; // ms until the next try
    while (!control.signal.aborted) {
      try {
        const answer = await exchange('GET', '/events', {query: {after: last}, headers: {Accept: 'text/event-stream'}, signal: control.signal, background: true});
        state('open');
        pause = 500;
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = '';
        for (;;) {
          const {value, done} = await reader.read();
          if (done) break;
          text += value;
          let end;
          while ((end = text.indexOf('\n\n')) >= 0) {
            const lines = text.slice(0, end).split('\n');
            text = text.slice(end + 2);
            const data = lines.filter(l => l.startsWith('data: ')).map(l => l.slice(6)).join('\n');
            if (!data) continue;
            const event = JSON.parse(data);
            last = event.id;
            f(event);
          }
        }
        state('the stream of events has ended');
      } catch (e) {
        if (control.signal.aborted) return;
        state(e.message);
        if (e.status === 401) return;
      }
      await new Promise(r => setTimeout(r, pause));
      pause = Math.min(pause * 2, 10000);
    }
  })();
  return () => control.abort();
}
