// The tabs of this browser at this address share a session: a tab that has none asks the others
// for theirs. It goes from tab to tab by messages, which a browser delivers to pages of the same
// origin alone, and is stored for the life of each tab: with the last of them it is gone.

const answersWithin = 300; // ms that a new tab waits for the others

const channel = new BroadcastChannel('ibwarden');
let waiting = null; // what a tab that asks has got: {id, sessions, all}

// share has this tab answer with what own() says, its session or null, and calls over with
// {session, all} when another tab says that its session has ended; all: those of all tabs are to.
export function share(own, over) {
  channel.addEventListener('message', ({data}) => {
    if (!data || typeof data !== 'object') return;
    const has = own();
    if (data.ask && has && Date.parse(has.expires_at) > Date.now()) channel.postMessage({answer: data.ask, has});
    if (waiting && data.answer === waiting.id && data.has && !waiting.all) waiting.sessions.push(data.has);
    if (!data.over) return;
    if (waiting) {
      waiting.all ||= data.all;
      waiting.sessions = waiting.sessions.filter(s => !data.all && s.session !== data.over);
    }
    over({session: data.over, all: Boolean(data.all)});
  });
}

// ended tells the other tabs that a session is over, with all: that somebody has logged out, so
// that theirs are to end too.
export function ended(session, all = false) { channel.postMessage({over: session, all}); }

// ask are the sessions of the other tabs.
export async function ask() {
  waiting = {id: Array.from(crypto.getRandomValues(new Uint32Array(4))).join('-'), sessions: [], all: false};
  channel.postMessage({ask: waiting.id});
  await new Promise(r => setTimeout(r, answersWithin));
  const {sessions} = waiting;
  waiting = null;
  return sessions;
}
