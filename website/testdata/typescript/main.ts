// Makes a partition with openapi-fetch and the types that openapi-typescript generates.
// Usage: node main.js URL TOKEN.
import createClient from "openapi-fetch";
import type { components, paths } from "./ibwarden.js";

type Problem = components["schemas"]["Problem"];

const [, , url, token] = process.argv;
const api = createClient<paths>({ baseUrl: url + "/api/v1", headers: { Authorization: `Bearer ${token}` } });

// answer is what a request was answered with; a problem ends the program.
function answer<T>(r: { data?: T; error?: unknown; response: Response }): T {
  if (r.data === undefined) throw new Error(JSON.stringify(r.error));
  return r.data;
}

function problem(p: Problem | undefined) {
  console.log("problem", p?.status, p?.reason, p?.errors?.[0]?.field);
}

for (const t of answer(await api.GET("/tenants")).items) {
  console.log("tenant", t.name, t.keys?.first, t.ports);
}

// The same request twice: the second changes nothing.
const params = { header: { "If-None-Match": "*", "Idempotency-Key": "first-try" }, query: { wait: "proved" as const } };
const training = { params, body: { name: "training" } };
const first = await api.POST("/partitions", training);
const made = answer(first);
console.log(first.response.status, made.words[0]);
const second = await api.POST("/partitions", training);
const again = answer(second);
console.log(second.response.status, "repeated", again.repeated, again.revision === made.revision);

const pkey = made.pkey!;
const added = answer(await api.POST("/partitions/{pkey}/members", {
  params: { path: { pkey }, query: { wait: "proved" } },
  body: { members: [{ port: "0x000000000010001d", membership: "full" }] },
}));
console.log(added.words[0]);
console.log("outcome", added.outcome?.state, added.outcome?.verdict);

// What is refused is a problem, with its reason in a word and the fields at fault.
problem((await api.POST("/partitions", { body: { name: "mine", pkey: "0x0010" } })).error);
problem((await api.POST("/partitions", { params, body: { name: "other" } })).error);
problem((await api.DELETE("/partitions/{pkey}", { params: { path: { pkey }, header: { "If-Match": '"99"' } } })).error);
