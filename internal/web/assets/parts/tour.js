// The tour of `ibwarden demo`: ten steps over the pages, which can be left at any step. It is there while
// the address says tour=N.

import {button, h, link, replace} from '../dom.js';

// steps are [hash, title, text]. Names are those of the demonstration.
const steps = [
  ['#/overview', 'Are the tenants apart?', 'The verdict says so, what it rests on, and when every table was last read back and proved. Below it: what is wrong, what waits, what changed.'],
  ['#/fabric?colour=owner', 'Who owns what', 'The map has the colours of the owners: red and blue are tenants; storage, which serves both, is the provider\'s. Press a host to see its port and its P_Keys.'],
  ['#/fabric?colour=load', 'What the cables carry', 'Hosts send data all the time. The colour of a cable is its load in per cent of its rate. Press a colour to see its cables alone.'],
  ['#/tenants', 'Who can talk with whom', 'Each cell is a pair of tenants. What the policy says is compared with what the devices hold. Open a cell to see it port by port.'],
  ['#/why?from=red-1&to=blue-1', 'Why not?', 'red-1 and blue-1 share no partition. Each check on the way of the packet is listed, and the remedies with what they would open.'],
  ['#/why?from=red-1&to=storage-1', 'Why?', 'red-1 reaches storage-1 over a partition that only red and storage have. The map shows the cables that the packet takes.'],
  ['#/overview', 'A broken cable', 'A cable of leaf-4 is pulled. Packets were led around it, and it is listed under what is wrong, with whom it concerns. Acknowledge it, with a note.'],
  ['#/events', 'A host that cheats', 'Every minute root of red-4 writes a P_Key of blue into its own port. The manager finds that within a second and takes it out. Switches would have dropped the packets meanwhile.'],
  ['#/change?task=move', 'Move a host', 'Choose hosts and a partition of the other tenant. The plan says who can talk with whom before and after; apply it, and follow it to the verdict.'],
  ['#/history', 'Take it back', 'Every change is a revision: who, when, why, and what became of it. Compare any two, and roll back. blue still waits for red\'s consent: it is on the first page.'],
];

// tour shows the tour, if the address asks for it.
export function tour() {
  const wanted = () => Number(new URLSearchParams(window.location.search).get('tour'));
  if (!(wanted() >= 1)) return;
  const box = h('aside', {class: 'tour', 'aria-label': 'Tour', tabindex: '-1'});
  const at = number => {
    window.history.replaceState(null, '', number ? `${window.location.pathname}?tour=${number}${window.location.hash}` : window.location.pathname + window.location.hash);
    if (!number) {
      box.remove();
      document.getElementById('main')?.focus();
      return;
    }
    show(number);
    window.location.hash = steps[number - 1][0];
    box.focus();
  };
  const show = number => {
    const [hash, title, text] = steps[number - 1];
    replace(box, h('h2', {}, `${number} of ${steps.length}: ${title}`), h('p', {}, text),
      h('div', {class: 'actions'}, number > 1 ? button('Back', () => at(number - 1)) : null,
        number < steps.length ? button('Next', () => at(number + 1), {class: 'primary'}) : null,
        link(hash, 'Show this step'), button(number < steps.length ? 'Leave the tour' : 'End the tour', () => at(0))));
  };
  const number = Math.min(Math.trunc(wanted()), steps.length);
  show(number);
  if (!window.location.hash) window.location.hash = steps[number - 1][0];
  return box;
}
