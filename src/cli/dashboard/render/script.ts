/**
 * The one script. It takes changes from the server and replaces the sections that differ, counts ages, filters nodes, and says when it
 * gets no news: an old page must not look like a new one.
 */
export const SCRIPT = String.raw`"use strict";
(() => {
  const SILENCE_MAX_MS = 15000;
  const { path, now, version } = document.body.dataset;
  const byId = (id) => document.getElementById(id);
  const live = byId("live"), news = byId("news"), said = byId("said"), asOf = byId("as-of"), filter = byId("filter");
  const known = new Map();
  let seen = version, source, offsetMs = Number(now) - performance.now(), heardMs = performance.now(), isHeard = false, trouble = "", retryMs = 2000;

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
    const silentMs = performance.now() - heardMs;
    const isSilent = silentMs > SILENCE_MAX_MS;
    const text = trouble || (isSilent ? "No news from the server: this page may be out of date" : "");
    document.body.classList.toggle("live", text === "" && isHeard);
    if (news.textContent !== text) news.textContent = text;
  }
  function applyFilter() {
    const wanted = filter.value.trim().toLowerCase();
    for (const item of live.querySelectorAll("ul.block > li")) {
      item.hidden = wanted !== "" && !item.textContent.toLowerCase().includes(wanted);
    }
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
    applyFilter();
    showAges();
    const summary = byId("summary")?.textContent;
    if (summary !== undefined && summary !== summaryBefore) said.textContent = summary;
  }
  function hear(text) {
    heardMs = performance.now();
    isHeard = true;
    trouble = text;
    showNews();
  }
  function listen() {
    if (source || document.hidden) return;
    source = new EventSource("/events?page=" + encodeURIComponent(path) + "&seen=" + encodeURIComponent(seen));
    source.addEventListener("page", ({ data, lastEventId }) => {
      seen = lastEventId;
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
      // The browser gives up after a refusal, which may be an API server that is away for a moment.
      hear("The server has refused this page and is asked again. If that goes on, open the page as you did before");
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
  if (live.querySelector("ul.block")) byId("filter-row").hidden = false;
  filter.addEventListener("input", applyFilter);
  setInterval(() => {
    showAges();
    showNews();
  }, 1000);
  showAges();
  listen();
})();
`;
