/**
 * The script of all pages. It receives changes from the server and replaces the sections that differ, updates ages, and
 * loads and filters nodes. It warns when it receives no updates: an old page must not look like a new one.
 */
export const SCRIPT = String.raw`"use strict";
(() => {
  const SILENCE_MAX_MS = 15000;
  const LOADS_MAX = 3;
  const { now, version } = document.body.dataset;
  let { path } = document.body.dataset;
  const byId = (id) => document.getElementById(id);
  const live = byId("live"), news = byId("news"), changes = byId("changes"), asOf = byId("as-of"), filter = byId("filter");
  const known = new Map();
  let shownVersion = version, source, offsetMs = Number(now) - performance.now(), receivedMs = performance.now(), hasReceived = false, isFiltered = false, trouble = "", retryMs = 2000;

  const ageText = (seconds) =>
    seconds < 60 ? seconds + " s" : seconds < 3600 ? Math.floor(seconds / 60) + " m " + (seconds % 60) + " s"
    : seconds < 172800 ? Math.floor(seconds / 3600) + " h" : Math.floor(seconds / 86400) + " d";
  function showAges() {
    const nowMs = performance.now() + offsetMs;
    for (const time of live.querySelectorAll("time")) {
      const seconds = Math.round((nowMs - Date.parse(time.dateTime)) / 1000);
      if (time.className === "for") {
        const lasted = ageText(Math.max(0, Math.floor((nowMs - Date.parse(time.dateTime)) / 1000)));
        if (time.textContent !== lasted) time.textContent = lasted;
        continue;
      }
      const text = seconds < 0 ? " (in " + ageText(-seconds) + ")" : " (" + ageText(seconds) + " ago)";
      let age = time.nextElementSibling;
      if (!age || age.className !== "age") {
        age = document.createElement("span");
        age.className = "age";
        time.after(age);
      }
      if (age.textContent !== text) age.textContent = text;
    }
  }
  function showNews() {
    const silentMs = performance.now() - receivedMs;
    const isSilent = silentMs > SILENCE_MAX_MS;
    const text = trouble || (isSilent ? "No updates from the server: this page may be out of date" : "");
    document.body.classList.toggle("live", text === "" && hasReceived);
    if (news.textContent !== text) news.textContent = text;
  }
  const near = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      near.delete(target);
      if (isIntersecting) near.add(target);
    }
    load();
  }, { rootMargin: "1500px 0px" });
  const isOld = (block) => block.dataset.has !== block.dataset.v;
  let loads = 0;
  function load() {
    for (const block of [...near].reverse()) {
      if (loads >= LOADS_MAX) return;
      if (block.isConnected && isOld(block) && !block.ariaBusy) void loadBlock(block);
    }
  }
  async function loadBlock(block) {
    const { v, from } = block.dataset;
    const query = new URLSearchParams(path.split("?")[1]);
    query.set("from", from);
    loads += 1;
    block.ariaBusy = "true";
    try {
      const answer = await fetch("/rows?" + query);
      if (!answer.ok) throw new Error(answer.status);
      const hasFocus = block.contains(document.activeElement);
      block.innerHTML = await answer.text();
      block.className = "block";
      block.dataset.has = v;
      if (hasFocus) block.querySelector("a")?.focus({ preventScroll: true });
    } catch {
      // The link still leads to the rows, and the next update loads them again.
      near.delete(block);
    } finally {
      loads -= 1;
      block.ariaBusy = null;
    }
    load();
  }
  function watchBlocks() {
    watcher.disconnect();
    near.clear();
    for (const block of live.querySelectorAll("ul.block")) watcher.observe(block);
  }
  function claim(section) {
    for (const block of section.querySelectorAll("ul.block:not(.rest, .end)")) block.dataset.has = block.dataset.v;
  }
  // Loaded rows stay, or the page would lose its scroll position. Each block gets the version that it should have.
  function keepRows(old, next) {
    const blocks = [...next.querySelectorAll("ul.block")];
    for (const block of blocks) {
      const had = old.querySelector('ul.block[data-from="' + block.dataset.from + '"]');
      if (had === null || had.dataset.has === undefined || block.dataset.has !== undefined) continue;
      had.dataset.v = block.dataset.v;
      block.replaceWith(had);
    }
  }
  function showFiltered() {
    const wanted = filter.value.trim();
    path = wanted === "" ? "/nodes" : "/nodes?q=" + encodeURIComponent(wanted);
    history.replaceState(null, "", path);
    shownVersion = "";
    isFiltered = true;
    source?.close();
    source = undefined;
    listen();
  }
  function replace(markup) {
    const next = document.createElement("template");
    next.innerHTML = markup;
    const open = new Set([...live.querySelectorAll("details[open]")].map((each) => each.dataset.key));
    const focused = live.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const summaryBefore = byId("summary")?.textContent;
    const ids = [];
    let before = null;
    for (const section of [...next.content.children]) {
      ids.push(section.id);
      const text = section.outerHTML;
      const old = byId(section.id);
      claim(section);
      if (old !== null && !isFiltered && known.get(section.id) !== text) keepRows(old, section);
      if (old === null) before === null ? live.prepend(section) : before.after(section);
      else if (known.get(section.id) !== text) old.replaceWith(section);
      known.set(section.id, text);
      before = byId(section.id);
    }
    for (const section of [...live.children]) if (!ids.includes(section.id)) section.remove();
    for (const each of live.querySelectorAll("details")) if (open.has(each.dataset.key)) each.open = true;
    if (focused !== null && !live.contains(document.activeElement)) {
      [...live.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
    }
    isFiltered = false;
    watchBlocks();
    showAges();
    const summary = byId("summary")?.textContent;
    if (summary !== undefined && summary !== summaryBefore) changes.textContent = summary;
  }
  function hear(text) {
    receivedMs = performance.now();
    hasReceived = true;
    trouble = text;
    showNews();
  }
  function listen() {
    if (source || document.hidden) return;
    source = new EventSource("/events?page=" + encodeURIComponent(path) + "&shown=" + encodeURIComponent(shownVersion));
    source.addEventListener("page", ({ data, lastEventId }) => {
      shownVersion = lastEventId;
      replace(data);
    });
    source.addEventListener("beat", ({ data }) => {
      offsetMs = Date.parse(data) - performance.now();
      asOf.dateTime = asOf.textContent = data;
      retryMs = 2000;
      hear("");
    });
    source.addEventListener("trouble", ({ data }) => hear("The cluster cannot be read, so this page may be out of date: " + data));
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) return;
      // The browser does not try again after a refusal, although the API server may be unreachable for a moment only.
      hear("The server refused this page. The page tries again. If this continues, open it again as you did before");
      source = undefined;
      setTimeout(listen, retryMs);
      retryMs = Math.min(2 * retryMs, 30000);
    });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source?.close();
      source = undefined;
    } else listen();
    showNews();
  });
  let typed;
  filter?.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(showFiltered, 250);
  });
  filter?.form.addEventListener("submit", (event) => {
    if (!hasReceived || trouble !== "") return;
    event.preventDefault();
    showFiltered();
  });
  live.addEventListener("focusin", ({ target }) => {
    const block = target.closest("ul.block");
    if (block) near.add(block);
    load();
  });
  claim(live);
  watchBlocks();
  setInterval(() => {
    showAges();
    showNews();
  }, 1000);
  showAges();
  listen();
})();
`;
