// Changes as requests to the API. A step is {title, method, path, body, query, ifMatch,
// ifNoneMatch, about}: about names what If-Match speaks of, so that a step after another on
// the same thing is sent with the ETag that the first one made. undo is what takes a step
// back: {assign: {owner: [guid]}} after a release beside a rollback, {owners: true} for a rollback
// after ports were moved, with {release: [guid]} for those that nobody had. after is true where a step may become possible
// only by the one before it. Nothing of this module knows of the page.

const removedAtOnce = 200; // ports in the path of one request, which has a bound

// What a rollback brings back: partitions, members and, if that is asked for, owners of ports.
const rolledBack = /^\/(partitions|rollback|ports\/release|ports\/move|approvals\/[^/]+\/approve)/;

const many = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;

function chunks(list, size) {
  const out = [];
  for (let i = 0; i < list.length; i += size) out.push(list.slice(i, i + size));
  return out;
}

// memberSteps are the requests that change the members of a partition: partition as the API
// gives it, joined a list of {port, membership, index0}, removed a list of GUIDs, etag of the
// members as they were read. What is taken away goes first. Nobody's consent is given by
// this but for the ports that are named.
export function memberSteps(partition, joined, removed, etag) {
  const name = `${partition.name} (${partition.pkey})`;
  const path = `/partitions/${partition.pkey}/members`;
  /** @type {any[]} */
  const steps = chunks(removed, removedAtOnce).map(ports => ({
    title: `Remove ${many(ports.length, 'port')} from ${name}`, method: 'DELETE', path, query: {port: ports.join(',')}, ifMatch: etag, about: path,
  }));
  if (joined.length) {
    const members = joined.map(m => ({port: m.port, membership: m.membership, ...(m.index0 ? {index0: true} : {})}));
    steps.push({title: `Add or change ${many(joined.length, 'member')} of ${name}`, method: 'POST', path, body: {members}, ifMatch: etag, about: path});
  }
  return steps;
}

// partitionStep is the request that makes a partition.
export function partitionStep(body) {
  return {title: `Make the partition ${body.name}`, method: 'POST', path: '/partitions', body, about: '/partitions', ifNoneMatch: body.pkey ? '*' : undefined};
}

// releaseStep takes ports, as the API gives them, from their tenants and out of all
// partitions.
export function releaseStep(ports) {
  const assign = {};
  for (const p of ports) if (p.owner) (assign[p.owner] = assign[p.owner] || []).push(p.guid);
  return {title: `Take ${many(ports.length, 'port')} from ${Object.keys(assign).join(', ') || 'nobody'}`, method: 'POST', path: '/ports/release', body: {ports: ports.map(p => p.guid)}, undo: {assign}};
}

// giveSteps move ports to a tenant, whoever has them now: out of all partitions, in one revision, and into a partition
// of the tenant if one is given; as says as what, of each port. Those that the tenant has are left alone.
export function giveSteps(tenant, ports, partition, as) {
  const groups = new Map();
  for (const p of ports) {
    if (p.owner === tenant) continue;
    const membership = partition ? as(p) : '';
    groups.set(membership, [...(groups.get(membership) || []), p]);
  }
  return [...groups].map(([membership, list]) => {
    const release = list.filter(p => !p.owner).map(p => p.guid);
    const body = {tenant, ports: list.map(p => p.guid), ...(partition ? {into: [{pkey: partition.pkey, membership}]} : {})};
    const where = partition ? `, into ${partition.name} (${partition.pkey})` : '';
    return {title: `Move ${many(list.length, 'port')} to ${tenant}${where}`, method: 'POST', path: '/ports/move', body, undo: {owners: list.length > release.length, ...(release.length ? {release} : {})}};
  });
}

// offerStep offers ports to another tenant, who takes them or does not.
export function offerStep(tenant, ports) {
  return {title: `Offer ${many(ports.length, 'port')} to ${tenant}`, method: 'POST', path: '/ports/offer', body: {tenant, ports: ports.map(p => p.guid)}};
}

// undoSteps take back steps that were made: made is a list of {step, revision}, oldest first.
// Ports that were nobody's, or are now, take requests of their own; the rest is a rollback to the
// revision before, which is refused if
// anybody has changed anything since. Where others made changes in between there are no steps:
// those changes would be taken back too.
export function undoSteps(made) {
  const steps = [];
  if (made.some((m, i) => m.revision !== made[0].revision + i)) return steps;
  for (const {step} of [...made].reverse()) {
    if (!step.undo) continue;
    if (step.undo.release) steps.push({title: `Take ${many(step.undo.release.length, 'port')} back`, method: 'POST', path: '/ports/release', body: {ports: step.undo.release}});
    for (const [owner, guids] of Object.entries(step.undo.assign || {})) steps.push({title: `Give ${many(guids.length, 'port')} back to ${owner}`, method: 'POST', path: '/ports/assign', body: {tenant: owner, ports: guids.map(guid => ({guid}))}, after: steps.length > 0});
  }
  const touchesMembers = made.some(({step}) => rolledBack.test(step.path));
  if (touchesMembers) {
    const to = made[0].revision - 1;
    const owners = made.some(({step}) => step.undo && step.undo.owners);
    steps.push({title: `Bring ${owners ? 'owners of ports, ' : ''}partitions and members back to revision ${to}`, method: 'POST', path: '/rollback', body: {to, ...(owners ? {owners} : {})}, ifMatch: `"${made[made.length - 1].revision}"`, about: '/rollback', every: true, after: steps.length > 0});
  }
  return steps;
}

// matchOf is the If-Match of a step, given the steps that were made before it: a change of
// the same thing has given it a newer ETag. What every change touches (a rollback) has that of
// the last one, if nobody else has made one in between; else the old one, which is refused.
export function matchOf(step, made) {
  if (!step.ifMatch) return undefined;
  if (step.own) return step.ifMatch; // it was read after those steps
  if (step.every) {
    const seen = Number(step.ifMatch.replaceAll('"', ''));
    return made.every((m, i) => m.revision === seen + 1 + i) ? `"${seen + made.length}"` : step.ifMatch;
  }
  const before = made.filter(m => m.step.about === step.about);
  return before.length ? `"${before[before.length - 1].revision}"` : step.ifMatch;
}

// moveSteps move ports to a partition: out of those that are named in leave (a map of P_Key to
// {partition, etag, members}) and into it; to a tenant, if it is to be another's, out of all. A
// port keeps the widest membership that it had in those that it leaves.
export function moveSteps(ports, leave, target, {tenant, membership, etag}) {
  const had = new Map();
  const away = tenant ? ports.filter(p => p.owner !== tenant) : [];
  const gone = new Set(away.map(p => p.guid));
  const as = p => membership || had.get(p.guid) || 'full';
  const steps = [];
  for (const {partition, members, etag: tag} of leave) {
    const out = [];
    for (const p of ports) {
      const m = members.find(x => x.port === p.guid);
      if (!m) continue;
      if (m.membership !== 'limited' || !had.has(p.guid)) had.set(p.guid, m.membership);
      if (!gone.has(p.guid)) out.push(p.guid);
    }
    if (out.length) steps.push(...memberSteps(partition, [], out, tag));
  }
  const stay = ports.filter(p => !gone.has(p.guid));
  if (target && stay.length) steps.push(...memberSteps(target, stay.map(p => ({port: p.guid, membership: as(p)})), [], etag));
  return [...steps, ...giveSteps(tenant, away, target, as)];
}
