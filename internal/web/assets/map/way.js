// The way of a packet on a small map.

import {h, replace} from '../dom.js';
import * as api from '../api.js';
import {pictureSaver} from '../save.js';
import {FabricMap} from './map.js';

let last = null; // the map that was read last, with its ETag

// latest is the map as it is now; what is known of it is not read again.
export async function latest() {
  const next = await api.fresh('/map', {}, last ? last.etag : '');
  if (next) last = next;
  return last;
}

// showWay draws a way in an element: hops as GET /why answers them.
export async function showWay(place, hops) {
  const spoken = h('p', {class: 'hidden', 'aria-live': 'polite'});
  const map = new FabricMap(() => {}, text => replace(spoken, text));
  map.element.classList.add('small');
  replace(place, map.element, pictureSaver(`Way of a packet from ${hops[0].name} to ${hops.at(-1).name}`, map.canvas), spoken);
  window.ibwarden.drawn = () => map.drawn();
  map.show(await latest());
  map.way(hops.map(hop => hop.node));
  map.frameWay();
}
