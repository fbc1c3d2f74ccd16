// Search in these pages: search-index.js has which word is in which part of which page.
"use strict";

// terms are the words of a text as the index has them.
function terms(text) {
  return (text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || []).map((t) => t.replaceAll("_", ""));
}

// find lists the parts that have all words of a query, or words that begin with them, best first.
function find(index, query, most) {
  const wanted = [...new Set(terms(query))];
  if (wanted.length === 0) return [];
  const words = Object.keys(index.words);
  let scores = null;
  for (const want of wanted) {
    const now = new Map();
    for (const word of words) {
      if (!word.startsWith(want)) continue;
      for (const part of index.words[word]) now.set(part, Math.max(now.get(part) || 0, word === want ? 2 : 1));
    }
    for (const [part, score] of now) {
      const [page, heading] = index.parts[part];
      const named = (text) => terms(text).some((t) => t.startsWith(want));
      const [, title, detail] = index.pages[page];
      const sum = score + (named(title) ? 6 : 0) + (named(heading) ? 4 : 0) - (detail ? 3 : 0);
      if (scores === null || scores.has(part)) now.set(part, sum + (scores === null ? 0 : scores.get(part)));
      else now.delete(part);
    }
    scores = now;
  }
  return [...scores.entries()].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, most).map(([part]) => {
    const [page, heading, id] = index.parts[part];
    const [path, title] = index.pages[page];
    return { path: id ? path + "#" + id : path, title, heading };
  });
}

if (typeof document === "undefined") {
  module.exports = { find };
} else {
  const here = document.currentScript.src;
  const box = document.querySelector(".search");
  const query = document.getElementById("query");
  const found = document.getElementById("found");
  const most = 20;

  // load fetches the index once, when somebody is about to search. As a script it can be had of a
  // file on the disk too.
  let loading = null;
  const load = () => loading ||= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("search-index.js", here);
    script.onload = () => resolve(window.searchIndex);
    script.onerror = () => { loading = null; reject(new Error("the index cannot be read")); };
    document.head.append(script);
  });

  const show = (results) => {
    const list = document.createElement("ul");
    for (const r of results) {
      const link = document.createElement("a");
      link.href = new URL(r.path, here);
      link.textContent = r.heading || r.title;
      const item = document.createElement("li");
      item.append(link);
      if (r.heading && r.heading !== r.title) {
        const page = document.createElement("span");
        page.textContent = r.title;
        item.append(page);
      }
      list.append(item);
    }
    found.replaceChildren(results.length > 0 ? list : "Nothing found.");
    found.hidden = false;
  };

  const search = async () => {
    const asked = query.value;
    if (terms(asked).length === 0) {
      found.hidden = true;
      return;
    }
    try {
      const index = await load();
      if (asked === query.value) show(find(index, asked, most));
    } catch (error) {
      found.textContent = "No search: " + error.message + ".";
      found.hidden = false;
    }
  };

  box.hidden = false;
  query.addEventListener("focus", () => load().catch(() => {}));
  query.addEventListener("input", search);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") found.hidden = true;
    if (event.key === "Enter" && event.target === query) found.querySelector("a")?.click();
  });
  document.addEventListener("click", (event) => {
    if (!box.contains(event.target)) found.hidden = true;
  });
}
