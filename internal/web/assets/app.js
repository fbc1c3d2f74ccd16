// The frame of the console: login, navigation, what is live, and the page that the hash of
// the address names.

import {button, field, h, link, notify, replace, settle, toHash, verdictMark} from './dom.js';
import * as api from './api.js';
import {proved} from './parts/controls.js';
import overview from './pages/overview.js';
import fabric from './pages/fabric.js';
import tenants from './pages/tenants.js';
import change from './pages/change.js';
import why from './pages/why.js';
import proof from './pages/proof.js';
import history from './pages/history.js';
import managers from './pages/managers.js';
import eventsPage from './pages/events.js';
import traffic from './pages/traffic.js';
import {tour} from './parts/tour.js';
import {showKeys} from './parts/keys.js';
import {openPalette} from './parts/palette.js';
import {lookBack, past} from './parts/past.js';

// Each page: its name in the hash, its title, render(main, params, app), and provider: true
// where tenants have nothing to see.
const pages = [overview, fabric, tenants, change, why, proof, history, managers, eventsPage, traffic];

// offered are the pages for whoever is logged in.
const offered = () => pages.filter(p => app.provider || !p.provider);

const statusEvery = 5000; // ms between two reads of how things are, beside events

const root = document.getElementById('app');
const listeners = new Set();

// app is what pages get: who is logged in, the last status, and events as they happen.
const app = {
  session: null,
  status: null,
  events: [], // the last of them, oldest first
  // onEvent calls f with each event from now on, until the page is left.
  onEvent(f) { listeners.add(f); leaving.push(() => listeners.delete(f)); },
  // every calls f now and then again and again until the page is left; a call that fails is
  // told once.
  every(ms, f) {
    let timer = 0, over = false, failed = '';
    const turn = async () => {
      try {
        await f();
        failed = '';
      } catch (e) {
        if (!over && e.message !== failed && e.name !== 'AbortError') notify(e.message, 'bad');
        failed = e.message;
      }
      if (!over) timer = setTimeout(turn, ms);
    };
    turn();
    leaving.push(() => { over = true; clearTimeout(timer); });
  },
  go(page, params) { location.hash = toHash(page, params); },
  get provider() { return Boolean(this.session && this.session.provider); },
};

// ibwarden is for tests and for those who look from the console of the browser.
window.ibwarden = {app, drawn: () => null};

let leaving = []; // what ends when the page is left
/** @type {Set<any>} */
const pastPages = new Set([overview, fabric, tenants]); // which the provider can have as they were
let inPast = false; // the page that is shown is of the past
let take = null; // how the page takes other parameters without being drawn again, if it can
let stopEvents = () => {};
let live; // the parts of the frame that change
let statusTimer = 0;

const eventsMost = 2000;

function theme(next) {
  const value = next ?? localStorage.getItem('ibwarden-theme') ?? '';
  if (next !== undefined) localStorage.setItem('ibwarden-theme', next);
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  document.dispatchEvent(new Event('themechange'));
  return value;
}

// wanted is, in the storage of a tab, the page to show after a login with the OpenID provider.
const wanted = 'ibwarden-wanted';

function loginPage(reason = '') {
  stop();
  const secret = field('Token', h('input', {type: 'password', autocomplete: 'off', spellcheck: 'false', required: true, maxlength: '100'}),
    'ibw_ and 43 characters. On the machine of the service, ibwarden show console prints an address that needs none.');
  const go = async () => {
    secret.fault('');
    const text = secret.control.value.trim();
    if (!/^ib[wc]{1,2}_[A-Za-z0-9_-]{43}$/.test(text)) {
      secret.fault('Want a token as ibwarden tenant token create prints it: ibw_ and 43 characters.');
      secret.control.focus();
      return;
    }
    try {
      await api.login(text);
      secret.control.value = '';
      start();
    } catch (e) {
      secret.fault(e.message);
      secret.control.focus();
    }
  };
  const provider = document.querySelector('meta[name=openid-provider]').getAttribute('content');
  const form = h('form', {class: 'login', onsubmit: e => { e.preventDefault(); go(); }},
    h('h1', {}, 'ibwarden'), reason ? h('p', {class: 'reason', role: 'status'}, reason) : null,
    provider ? h('div', {class: 'actions'}, button(`Log in with ${provider}`, () => { sessionStorage.setItem(wanted, location.hash); location.assign('/login/begin'); }, {class: 'primary'})) : null,
    secret, h('div', {class: 'actions'}, h('button', {type: 'submit', class: provider ? '' : 'primary'}, 'Log in')),
    h('p', {class: 'hint'}, 'The token leaves this page only once, for a session that ends after 30 minutes without use, after 8 hours, or with the last tab of the console.'));
  document.title = 'Log in · ibwarden';
  replace(root, h('main', {class: 'center'}, form));
  secret.control.focus();
}

function frame() {
  live = {
    verdict: h('span', {}), read: h('span', {class: 'when'}), stream: h('span', {class: 'stream'}),
    aged: h('p', {class: 'aged', role: 'status', hidden: true}),
    nav: h('ul', {}), main: h('main', {id: 'main', tabindex: '-1'}),
  };
  const themes = h('select', {'aria-label': 'Colours', onchange: e => theme(e.target.value)},
    [['', 'As the system'], ['light', 'Light'], ['dark', 'Dark']].map(([v, t]) => h('option', {value: v}, t)));
  themes.value = theme();
  const who = app.session;
  replace(live.nav, offered().map(p => h('li', {}, link(toHash(p.name), p.title))));
  replace(root,
    h('a', {class: 'skip', href: '#main', onclick: e => { e.preventDefault(); live.main.focus(); }}, 'Go to the content'),
    h('header', {class: 'top'},
      h('span', {class: 'brand'}, 'ibwarden'),
      h('span', {class: 'state', role: 'status'}, live.verdict), live.read, live.stream,
      h('button', {type: 'button', title: 'Ctrl K', onclick: palette}, 'Find …'),
      h('span', {class: 'who'}, who.provider ? 'provider' : `tenant ${who.tenant}`, who.read_only ? ', read only' : '', ` (${who.name})`),
      themes, button('Log out', logout)),
    h('nav', {class: 'pages', 'aria-label': 'Pages'}, live.nav),
    live.aged, live.main, tour(), h('div', {id: 'notices', role: 'log', 'aria-live': 'polite', 'aria-label': 'Messages'}));
}

// logout ends the session here, and where an OpenID provider began it, there too.
async function logout() {
  const there = app.session.logout_url;
  await api.logout();
  if (there) location.assign(there);
  else loginPage('You have logged out.');
}

async function readStatus() {
  clearTimeout(statusTimer);
  try {
    const s = await api.item('/status', {}, {background: true});
    app.status = s;
    replace(live.verdict, verdictMark(s.verdict));
    replace(live.read, proved(s));
  } catch (e) {
    if (e.status === 401) return;
    replace(live.verdict, verdictMark('unknown'));
    replace(live.read, e.message);
  }
  statusTimer = setTimeout(readStatus, statusEvery);
}

const soon = settle(() => { if (app.session) readStatus(); }, 300);

function stop() {
  leave();
  for (const d of /** @type {NodeListOf<HTMLDialogElement>} */ (document.querySelectorAll('dialog[open]'))) d.close('no');
  stopEvents();
  clearTimeout(statusTimer);
  app.session = null;
  app.events = [];
}

function leave() {
  for (const f of leaving.splice(0)) f();
  take = null;
  window.ibwarden.drawn = () => null;
}

async function start() {
  stop();
  try {
    app.session = {...api.session(), ...await api.get('/session')};
  } catch (e) {
    loginPage(e.status === 401 ? 'Your session has ended.' : e.message);
    return;
  }
  if (!api.session()) { // another tab has logged out meanwhile
    loginPage('You have logged out in another tab.');
    return;
  }
  frame();
  readStatus();
  stopEvents = api.events(event => {
    app.events.push(event);
    if (app.events.length > eventsMost) app.events.shift();
    for (const f of [...listeners]) f(event);
    soon();
  }, state => {
    replace(live.stream, state === 'open' ? 'live' : 'not live');
    live.stream.title = state === 'open' ? 'events arrive as they happen' : state;
    live.stream.classList.toggle('off', state !== 'open');
  });
  route();
}

// route shows the page of the hash: #/why?from=a&to=b.
async function route() {
  if (!app.session) return;
  const [name, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const page = offered().find(p => p.name === name) || pages[0];
  const params = Object.fromEntries(new URLSearchParams(query));
  const back = Boolean(params.at) && app.provider && pastPages.has(page);
  if (take && live.main.dataset.page === page.name && back === inPast) {
    await take(params).catch(e => notify(e.message, 'bad'));
    live.main.querySelector('.page').dataset.ready = 'true';
    return;
  }
  leave();
  inPast = back;
  offered().forEach((p, i) => {
    const a = live.nav.querySelectorAll('a')[i];
    a.href = toHash(p.name, back && pastPages.has(p) ? {at: params.at, with: params.with} : {});
    if (p === page) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  });
  document.title = `${page.title} · ibwarden`;
  const title = h('h1', {tabindex: '-1'}, page.title);
  const body = h('div', {class: `page page-${page.name}`});
  replace(live.main, h('div', {class: 'title'}, title, app.provider && pastPages.has(page) && !back ? lookBack(page, app) : null), body);
  live.main.dataset.page = page.name;
  title.focus({preventScroll: true});
  window.scrollTo(0, 0);
  try {
    /** @type {void | (() => void) & {take?: (params: object) => Promise<void>}} */
    const end = await (back ? past : page.render)(body, params, app, page);
    if (typeof end === 'function') {
      if (live.main.contains(body)) {
        leaving.push(end);
        take = end.take;
      } else {
        end();
      }
    }
  } catch (e) {
    if (e.status !== 401 && live.main.contains(body)) replace(body, h('p', {class: 'fault', role: 'alert'}, e.message), button('Try again', route));
  }
  if (live.main.contains(body)) body.dataset.ready = 'true';
}

api.onEnd(why => { if (app.session) loginPage(why); });
api.onAge(why => {
  if (!live) return;
  live.aged.hidden = !why;
  replace(live.aged, why ? `What is shown may be old: ${why}` : '');
});
window.addEventListener('hashchange', () => { if (!takeCode()) route(); });

const palette = () => openPalette(app, offered());

// Keys (parts/keys.js): / goes to the first search of the page, g and a digit to a page.
let wentG = 0;
document.addEventListener('keydown', e => {
  if (app.session && e.key.toLowerCase() === 'k' && (e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey) {
    e.preventDefault();
    if (!document.querySelector('dialog[open]')) palette();
  }
  const at = /** @type {HTMLElement} */ (e.target);
  if (app.session && e.key === '?' && !at.closest('input, select, textarea, dialog')) showKeys();
  if (e.ctrlKey || e.altKey || e.metaKey || at.closest('input, select, textarea, [contenteditable], dialog, canvas')) return;
  if (e.key === '/') {
    const search = /** @type {HTMLElement | null} */ (document.querySelector('main input[type=search]'));
    if (search) { e.preventDefault(); search.focus(); }
  } else if (e.key === 'g') {
    wentG = Date.now();
  } else if (/^\d$/.test(e.key) && Date.now() - wentG < 1500) {
    const a = live && live.nav.querySelectorAll('a')[(Number(e.key) + 9) % 10];
    if (a) a.click();
  }
});

theme();
// takeCode logs in with a code of one use, from ibwarden show console, if the address has one; it
// is taken out of the address before it is used. Such an address can be entered where the
// console is open already.
function takeCode() {
  const code = /^#code=(ibwc_[A-Za-z0-9_-]{43})$/.exec(location.hash);
  if (!code) return false;
  const to = sessionStorage.getItem(wanted) || '';
  sessionStorage.removeItem(wanted);
  window.history.replaceState(null, '', location.pathname + location.search + (to.startsWith('#/') ? to : ''));
  stop();
  api.login(code[1]).then(start, e => loginPage(`The code of the address was not taken: ${e.message}`));
  return true;
}

if (!takeCode()) {
  if (api.session()) start();
  else api.join().then(why => {
    if (app.session || root.firstChild) return; // a code was entered meanwhile
    if (api.session()) start();
    else loginPage(why);
  });
}
