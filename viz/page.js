// Brings the parts together: one state, and every change of it shown everywhere.

const model = readModel(JSON.parse(byId("data").textContent));
const state = {plan: 0, kind: "seconds", selected: -1, isFolded: model.alike.size > 0, pane: "costs"};

const callbacks = {
  select(id, isFar = false) {
    state.selected = id;
    show();
    byId("said").textContent = graph.tipOf(id);
    if (isFar) graph.focus(id, false);
  },
  choosePlan(plan) {
    state.plan = plan;
    show();
  },
  mark(site) {
    details.mark(site);
    costs.mark(site);
  },
  drawn(count) {
    const {dataset} = document.documentElement;
    dataset.drawn = String(count);
    dataset.ready = "1";
  },
};

const graph = new GraphView(byId("graph"), model, callbacks);
const details = new Details(byId("details"), model, callbacks);
const costs = new Costs(model, callbacks);
const panes = new Map([["costs", costs], ["memory", new MemoryPane(byId("memory"), model, callbacks)],
  ["messages", new MessagesPane(byId("messages"), model)],
  ...(model.plans.length > 1 ? [["compared", new ComparedPane(byId("compared"), model, callbacks)]] : [])]);
const paneNames = {costs: "costs", memory: "memory, vertex by vertex", messages: "who sends to whom", compared: "planners compared"};

function show() {
  fillSwitch(byId("colouring"), kindsOf(model), state.kind, (kind) => {
    state.kind = kind;
    show();
  });
  fillSwitch(byId("layers"), [[true, "equal layers once"], [false, "all"]], state.isFolded, (isFolded) => {
    state.isFolded = isFolded;
    show();
  });
  byId("layers").hidden = model.alike.size === 0;
  fillSwitch(byId("planners"), model.plans.map((plan, at) => [at, plan.planner]), state.plan, callbacks.choosePlan);
  byId("planners").hidden = model.plans.length === 1;
  graph.show({...state});
  details.show(state);
  showPane();
  showLegend();
  keepInAddress();
}

/** What is chosen of all that stands below the graph. */
function showPane() {
  fillSwitch(byId("panes"), [...panes.keys()].map((pane) => [pane, paneNames[pane]]), state.pane, (pane) => {
    state.pane = pane;
    show();
  });
  for (const pane of Object.keys(paneNames)) byId(pane).hidden = pane !== state.pane;
  panes.get(state.pane).show({...state});
}

function showLegend() {
  const ramp = (stops) => `background:linear-gradient(90deg,${stops.map((_, at) => cssOf(mixed(stops, at / (stops.length - 1)))).join(",")})`;
  const highest = kindText(state.kind, {[state.kind]: graph.highest});
  const each = state.isFolded ? "per vertex, layers together" : "per vertex";
  byId("legend").replaceChildren(
    element("span", {}, "0", element("i", {class: "ramp", style: ramp(rampOf(state.kind))}), `${highest} ${each}`),
    element("span", {}, element("i", {style: "width:18px;height:3px;border-radius:2px;background:var(--accent)"}), "moves between sites"),
    element("span", {}, element("i", {style: "width:18px;height:10px;border-radius:5px;border:1px dashed var(--quiet)"}), "input"),
    element("span", {}, element("i", {style: "width:18px;height:10px;border-radius:3px;border:2px solid var(--text)"}), "output"));
}

// --- the address: #vertex=C&planner=sqrt&colour=bytes&layers=all&show=memory

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const plan = model.plans.findIndex(({planner}) => planner === given.get("planner"));
  if (plan >= 0) state.plan = plan;
  if (kindsOf(model).some(([kind]) => kind === given.get("colour"))) state.kind = given.get("colour");
  if (given.get("layers") === "all") state.isFolded = false;
  if (panes.has(given.get("show"))) state.pane = given.get("show");
  const chosen = model.vertices.findIndex(({name}) => name === given.get("vertex"));
  if (chosen >= 0) state.selected = chosen;
  return chosen >= 0;
}

function keepInAddress() {
  const kept = new URLSearchParams({vertex: model.vertices[state.selected].name, planner: model.plans[state.plan].planner});
  if (state.kind !== "seconds") kept.set("colour", state.kind);
  if (model.alike.size > 0 && !state.isFolded) kept.set("layers", "all");
  if (state.pane !== "costs") kept.set("show", state.pane);
  try {
    history.replaceState(null, "", `#${kept}`);
  } catch (refused) {
    console.info(String(refused));  // some browsers keep no address of local files
  }
}

function mostExpensive() {
  const seconds = (id) => figuresOf(model, state.plan, id, state.isFolded).seconds;
  return viewOf(model, state.isFolded).ids.reduce((best, id) => seconds(id) >= seconds(best) ? id : best, 0);
}

// --- finding a vertex

const search = byId("search");
const found = byId("found");
let matches = [];
let candidate = 0;

function findVertices() {
  const wanted = search.value.trim().toLowerCase();
  const rank = ({name, formula, isInput}) => {
    const lower = name.toLowerCase();
    if (lower === wanted) return 0;
    if (lower.startsWith(wanted)) return 1;
    return lower.includes(wanted) ? 2 : !isInput && formula.toLowerCase().includes(wanted) ? 3 : 4;
  };
  const ranked = wanted ? model.vertices.map((vertex) => [rank(vertex), vertex]).filter(([at]) => at < 4) : [];
  matches = ranked.sort((a, b) => a[0] - b[0] || a[1].id - b[1].id).slice(0, 30).map(([, vertex]) => vertex);
  candidate = 0;
  showMatches();
}

function showMatches() {
  found.hidden = search.value.trim() === "";
  search.setAttribute("aria-expanded", String(!found.hidden));
  const items = matches.map((vertex, at) => element("li", {
    id: `found-${at}`, role: "option", "aria-selected": String(at === candidate), onpointerdown: (event) => {
      event.preventDefault();
      choose(vertex);
    }}, element("b", {}, vertex.name), element("span", {class: "mono"}, vertex.formula)));
  found.replaceChildren(...(items.length > 0 ? items : [element("li", {class: "quiet"}, "no vertex has this name or formula")]));
  if (items.length === 0) return search.removeAttribute("aria-activedescendant");
  search.setAttribute("aria-activedescendant", `found-${candidate}`);
  items[candidate].scrollIntoView({block: "nearest"});
}

function choose(vertex) {
  closeSearch();
  callbacks.select(vertex.id, true);
}

function closeSearch() {
  search.value = "";
  findVertices();
}

search.addEventListener("input", findVertices);
search.addEventListener("blur", () => { found.hidden = true; });
search.addEventListener("keydown", (event) => {
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (step && matches.length > 0) {
    event.preventDefault();
    candidate = (candidate + step + matches.length) % matches.length;
    showMatches();
  } else if (event.key === "Enter" && matches.length > 0) {
    choose(matches[candidate]);
    byId("graph").focus();
  } else if (event.key === "Escape") {
    closeSearch();
  }
});

// --- the page as a whole

byId("zoom").addEventListener("click", (event) => {
  const act = {in: () => graph.zoom(1.4), out: () => graph.zoom(1 / 1.4), fit: () => graph.fit(), focus: () => graph.focus(state.selected, true)};
  const name = event.target.dataset.do;
  if (name) act[name]();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  search.focus();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
window.addEventListener("hashchange", () => {
  readAddress();
  show();
});

const computedVertices = model.vertices.filter((vertex) => !vertex.isInput).length;
document.title = `${model.program} on ${counted(model.sites, "site")}`;
byId("program").textContent = model.program;
const layersText = model.layers.map(({times, ids}) => ` (${ids.length} \u00d7 ${times} alike)`).join("");
const limitText = (model.limit === null ? "" : `, at most ${bytesText(model.limit)} on each`) +
  (model.processLimit === null ? "" : `, at most ${bytesText(model.processLimit)} together`);
const measuredText = model.machineRanks === null || model.machineRanks === model.sites ? ""
  : ` measured on ${counted(model.machineRanks, "rank")}`;
byId("facts").textContent = `${counted(model.sites, "site")}${limitText}, machine ${model.machine}${measuredText}; ` +
  `${counted(computedVertices, "vertex", "vertices")}${layersText}, ${counted(model.vertices.length - computedVertices, "input")}` +
  (model.measured === null ? "" : `; run in ${secondsText(model.measured.seconds)}`);
const isGiven = readAddress();
if (state.selected < 0) state.selected = mostExpensive();
show();
if (isGiven && graph.view.ids.length > 60) graph.move(graph.nearTo(state.selected));
document.documentElement.dataset.layoutMilliseconds = graph.layoutMilliseconds.toFixed(0);
