"use strict";
// The page works without this: it adds filters, sorting, charts, and the way to a linked entry.
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const STEP = 50;

  // Light or dark: the system's choice until the reader makes one.
  const theme = byId("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const remembered = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const isDark = () => (document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  if (remembered()) document.documentElement.dataset.theme = remembered();
  theme.hidden = false;
  nameTheme();
  prefersDark.addEventListener("change", nameTheme);
  theme.addEventListener("click", () => {
    const chosen = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    try { localStorage.setItem("theme", chosen); } catch { /* a file may not have a store */ }
    nameTheme();
  });

  // Filters. What a row is searched by is read once, when it is first asked for.
  const form = document.querySelector("form.filters");
  const rows = all("tr[data-entry]");
  const sections = all("details.entry");
  const limits = new Map(all("table.board").map((table) => [table, STEP]));
  const texts = new Map();
  const textOf = (row) => {
    if (!texts.has(row)) {
      const section = byId(row.dataset.entry);
      const said = section ? all(".hypothesis, .reason", section).map((part) => part.textContent) : [];
      texts.set(row, [row.querySelector(".what").textContent, ...said].join(" ").toLowerCase());
    }
    return texts.get(row);
  };
  const asked = () => ({
    q: byId("search").value.trim(),
    standing: byId("standing").value,
    iteration: byId("iteration").value,
    own: byId("own").checked ? "1" : "",
  });
  const takes = (row, want) => (
    (!want.standing || row.dataset.standing === want.standing)
    && (!want.iteration || row.dataset.iteration === want.iteration)
    && (!want.own || row.dataset.other === undefined)
    && want.q.toLowerCase().split(/\s+/).every((word) => textOf(row).includes(word))
  );
  const filter = () => {
    const want = asked();
    const taken = new Set();
    let count = 0;
    for (const table of limits.keys()) {
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        const taking = takes(row, want);
        if (taking) { taken.add(row.dataset.entry); shown += 1; }
        row.hidden = !taking || shown > limits.get(table);
      }
      count += shown;
      const more = table.parentElement.querySelector("button.more");
      more.hidden = shown <= limits.get(table);
      more.textContent = `Show ${Math.min(STEP, shown - limits.get(table))} more of ${shown}`;
    }
    let shown = 0;
    for (const section of sections) {
      const taking = taken.has(section.id);
      shown += taking;
      section.hidden = !taking || (shown > Math.max(...limits.values()) && !section.open);
    }
    byId("found").textContent = `${count} of ${rows.length} entries`;
    return want;
  };
  const toAddress = (want) => {
    const query = new URLSearchParams(Object.entries(want).filter(([, value]) => value)).toString();
    history.replaceState(null, "", query ? `#?${query}` : "#");
  };
  const fromAddress = () => {
    const given = new URLSearchParams(location.hash.slice(2));
    byId("search").value = given.get("q") || "";
    byId("standing").value = given.get("standing") || "";
    byId("iteration").value = given.get("iteration") || "";
    byId("own").checked = given.has("own");
    filter();
  };
  if (form) {
    form.hidden = false;
    byId("own").closest("label").hidden = !rows.some((row) => row.dataset.other !== undefined);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => toAddress(filter()));
    form.addEventListener("reset", () => setTimeout(() => toAddress(filter())));
    for (const table of limits.keys()) {
      table.parentElement.querySelector("button.more").addEventListener("click", () => {
        limits.set(table, limits.get(table) + STEP);
        filter();
      });
    }
  }

  // Sorting by a column; what was not measured stays last either way.
  const sort = (table, head, column) => {
    const numeric = head.classList.contains("num") || head.matches(":last-child");
    const [first, second] = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
    const order = head.getAttribute("aria-sort") === first ? second : first;
    const sign = order === "ascending" ? 1 : -1;
    all("th", table).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
    const keyed = [...table.tBodies[0].rows].map((row) => [row.cells[column].dataset.sort, row]);
    keyed.sort(([a], [b]) => {
      if (a === "" || b === "") return (a === "") - (b === "");
      return sign * (numeric ? Number(a) - Number(b) : a.localeCompare(b));
    });
    table.tBodies[0].append(...keyed.map(([, row]) => row));
    filter();
  };
  for (const table of limits.keys()) {
    all("th", table).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", () => sort(table, head, column));
      head.replaceChildren(button);
    });
  }

  // A link to anything opens what it lies in, and shows it whatever the filters say.
  const follow = () => {
    if (location.hash.startsWith("#?")) { if (form) fromAddress(); return; }
    const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    target.hidden = false;
    for (let place = target; place; place = place.parentElement) {
      if (place.tagName === "DETAILS") place.open = true;
    }
    target.scrollIntoView();
    const place = target.querySelector("summary") || target;
    if (!place.matches("summary, a, button")) place.tabIndex = -1;
    place.focus({ preventScroll: true });
  };
  if (form) filter();
  addEventListener("hashchange", follow);
  follow();

  // The entity graph: what a box is linked to stays, the rest steps back.
  for (const map of all("svg.map")) {
    const edges = all(".edge", map);
    const point = (box) => {
      const name = box && box.dataset.node;
      const near = new Set([name]);
      for (const edge of edges) {
        const touches = edge.dataset.from === name || edge.dataset.to === name;
        edge.classList.toggle("far", Boolean(name) && !touches);
        edge.classList.toggle("near", touches);
        if (touches) { near.add(edge.dataset.from); near.add(edge.dataset.to); }
      }
      for (const other of all(".box", map)) other.classList.toggle("far", Boolean(name) && !near.has(other.dataset.node));
    };
    for (const box of all(".box", map)) {
      box.addEventListener("pointerenter", () => point(box));
      box.addEventListener("pointerleave", () => point(null));
      box.addEventListener("focusin", () => point(box));
      box.addEventListener("focusout", () => point(null));
    }
  }

  // Charts: those in view first, the others when the browser has time, so that a print has all. `ast`: Vega interprets expressions and evaluates none.
  const plots = JSON.parse(byId("plots").textContent);
  const draw = async (place) => {
    const options = { mode: "vega-lite", ast: true, actions: false, renderer: "svg", tooltip: { theme: "page" } };
    const { view } = await vegaEmbed(place, plots[place.dataset.plot], options);
    view.addEventListener("click", (event, item) => {
      const datum = item && item.datum;
      const id = datum && (datum.entry || datum.leads_to);
      if (id && byId(id)) location.hash = id;
    });
    place.dataset.drawn = "";
  };
  const watcher = new IntersectionObserver((seen) => {
    for (const one of seen) {
      if (one.isIntersecting) { undrawn.delete(one.target); watcher.unobserve(one.target); draw(one.target); }
    }
  }, { rootMargin: "300px" });
  const undrawn = new Set(all(".plot"));
  undrawn.forEach((place) => watcher.observe(place));
  const whenIdle = window.requestIdleCallback || ((then) => setTimeout(then, 200));
  const drawNext = async () => {
    const [place] = undrawn;
    if (!place) return;
    undrawn.delete(place);
    watcher.unobserve(place);
    await draw(place);
    whenIdle(drawNext);
  };
  whenIdle(drawNext);

  // A page that is served by `eop report --watch` is loaded anew when there is a newer one.
  const version = document.documentElement.dataset.version;
  if (version) {
    const open = () => all("details[open][id]").map((one) => one.id);
    const kept = JSON.parse(sessionStorage.getItem("kept") || "null");
    if (kept) {
      sessionStorage.removeItem("kept");
      kept.open.forEach((id) => { if (byId(id)) byId(id).open = true; });
      scrollTo(0, kept.y);
    }
    const ask = async () => {
      try {
        const answer = await fetch("version");
        if (answer.ok && (await answer.text()) !== version) {
          sessionStorage.setItem("kept", JSON.stringify({ y: scrollY, open: open() }));
          location.reload();
        }
      } catch { /* the server has gone: the page stays as it is */ }
    };
    setInterval(ask, 2000);
  }
})();
