// What plans cost: all planners side by side, each site, and the most expensive vertices.

const totalColumns = [
  ["seconds", "time, as the machine's profile has it", (plan) => plan.cost.seconds, secondsText],
  ["bytes", "received by all sites together", (plan) => plan.cost.bytes, bytesText],
  ["busiest", "bytes that the site receives that receives most", (plan) => plan.most_received, bytesText],
  ["memory", "bytes that the site holds that holds most, at its worst", (plan) => plan.peak_memory.predicted, bytesText],
  ["floats", "floats delivered, as the implementation algebra counts them", (plan) => plan.cost.floats, countText],
  ["bound", "floats moved in the worst case", (plan) => plan.cost.bound, countText],
  ["planned", "how long planning took", (plan) => plan.plan_seconds, secondsText],
];

/** What is compared there, where its name does not say it. */
function measuredTitle(model, name) {
  const whose = model.isShared ? "measured of all sites together, which share this process's memory" : "measured on the rank that had most";
  return {memory: `of tensors: predicted for the site that needs most, ${whose}`,
    "tensors in memory": `at the worst: predicted for the site that needs most, ${whose}`,
    seconds: "predicted from the machine's profile",
    "bytes received": model.isShared ? "nothing was sent" : "measured bytes went from rank to rank",
    process: "the most memory that it had, with everything", processes: "the most memory that each had, with everything"}[name];
}

class Costs {
  constructor(model, callbacks) {
    [this.model, this.callbacks] = [model, callbacks];
    this.ranking = "seconds";
    this.isMemory = false;
    this.marked = -1;
    this.bars = element("canvas", {role: "img", onpointermove: (event) => this.hoverSite(event), onpointerleave: () => showTip(""),
      onclick: (event) => this.callbacks.mark(this.siteAt(event) === this.marked ? -1 : this.siteAt(event))});
    new ResizeObserver(() => this.drawBars()).observe(this.bars);
  }

  show(state) {
    this.state = state;
    this.showTotals();
    this.showSites();
    this.showTop();
  }

  showTotals() {
    const {plans, refused} = this.model;
    const isCompared = plans.length + refused.length > 1;
    const least = totalColumns.map(([, , of]) => Math.min(...plans.map(of).filter(Number.isFinite)));
    const most = totalColumns.map(([, , of]) => Math.max(...plans.map(of).filter(Number.isFinite)));
    const rows = plans.map((plan, at) => element("tr", {"aria-selected": String(at === this.state.plan), onclick: () => this.callbacks.choosePlan(at)},
      element("td", {}, plan.planner),
      ...totalColumns.map(([, , of, text], column) => {
        const value = of(plan);
        const isBest = plans.length > 1 && column + 1 < totalColumns.length && value === least[column] && least[column] < most[column];
        const meter = column > 1 || !(most[column] > 0) ? null : element("i", {class: "meter",
          style: `width:${Math.max(2, 46 * value / most[column])}px;background:var(${column === 0 ? "--warm" : "--accent"})`});
        const isOver = totalColumns[column][0] === "memory" && this.model.limit !== null && value > this.model.limit;
        return element("td", {class: `number${isOver ? " over" : isBest ? " best" : ""}`}, text(value), meter);
      })));
    const without = refused.map(({planner, reason}) => element("tr", {},
      element("td", {}, planner), element("td", {class: "quiet", colspan: totalColumns.length}, `no plan: ${reason}`)));
    byId("totals").replaceChildren(
      element("div", {class: "head"}, element("h3", {}, isCompared ? "Planners side by side" : "Totals"),
        element("span", {class: "quiet"}, plans.length > 1 ? "click to switch" : "")),
      element("table", {}, element("thead", {}, element("tr", {}, element("th", {}, "planner"),
        ...totalColumns.map(([name, title]) => element("th", {class: "number", title}, name)))), element("tbody", {}, ...rows, ...without)), ...this.measured(), ...this.across(), this.peak());
  }

  /** Of a run: what was predicted of all of it beside what was measured. */
  measured() {
    const {measured} = this.model;
    if (measured === null) return [];
    const plan = this.model.plans[0];
    const ranks = measured.peak_memory_per_rank;
    const columns = [
      ["seconds", secondsText(plan.cost.seconds), secondsText(measured.seconds)],
      ["bytes received", bytesText(plan.cost.bytes), this.model.isShared ? "memory is shared" : bytesText(measured.bytes_moved)],
      ["tensors in memory", bytesText(plan.peak_memory.predicted), bytesText(measured.peak_memory)],
      [ranks.length > 1 ? "processes" : "process", "", ranks.map(bytesText).join(", ")]];
    const row = (name, at) => element("tr", {}, element("td", {}, name), ...columns.map((column) => element("td", {class: "number"}, column[at])));
    const told = [
      measured.seconds_of_runs.length > 1 ? `the last of ${measured.seconds_of_runs.length} runs: ${measured.seconds_of_runs.map(secondsText).join(", ")}` : "",
      measured.bytes_spilled > 0 ? `${bytesText(measured.bytes_spilled)} written to disk for want of memory, ${bytesText(measured.bytes_read_back)} read back` : ""];
    return [element("table", {class: "measured"}, element("thead", {}, element("tr", {}, element("th", {}, "this run"),
      ...columns.map(([name]) => element("th", {class: "number", title: measuredTitle(this.model, name)}, name)))), element("tbody", {}, row("predicted", 1), row("measured", 2))),
    ...told.filter((text) => text).map((text) => element("p", {class: "quiet"}, text))];
  }

  /** The bytes that cross links, by the plan that is chosen. */
  across() {
    const links = this.model.plans[this.state.plan].links || [];
    const told = links.map(({name, bytes}) => `${bytesText(bytes)} cross ${name}`);
    return told.length === 0 ? [] : [element("p", {class: "quiet"}, `Of what is received, ${told.join(", ")} (what several sites of a group need, once)`)];
  }

  /** What makes up the peak of the plan that is chosen. */
  peak() {
    const {limit} = this.model;
    const {predicted, site, vertex, tensors} = this.model.plans[this.state.plan].peak_memory;
    const prefixes = {stored: "", copy: "copied ", partial: "partial results of ", between: "between the joins of "};
    const shown = tensors.slice(0, 4).map(({name, as, bytes}) => `${prefixes[as]}${name} ${bytesText(bytes)}`);
    if (tensors.length > shown.length) shown.push(`and ${tensors.length - shown.length} more`);
    const allowed = limit === null ? "" : `, of ${bytesText(limit)} allowed,`;
    return element("p", {class: "quiet"}, `Peak memory ${bytesText(predicted)}${allowed} on site ${site} while ${vertex} is computed` +
      (shown.length > 0 ? `: ${shown.join(", ")}` : ""));
  }

  /** Per site: the bytes that it receives, or holds at its worst. */
  bytesOfSites() {
    const plan = this.model.plans[this.state.plan];
    return this.isMemory ? [plan.peak_memory.by_site, plan.peak_memory.predicted] : [plan.received, plan.most_received];
  }

  showSites() {
    const [bytes, most] = this.bytesOfSites();
    const what = this.isMemory ? "holds at its worst" : "receives";
    const limit = this.isMemory && this.model.limit !== null ? `; ${bytesText(this.model.limit)} are allowed` : "";
    this.bars.setAttribute("aria-label", `Bytes that each of ${counted(bytes.length, "site")} ${what}; at most ${bytesText(most)}, by site ${bytes.indexOf(most)}${limit}`);
    const choice = element("div", {class: "switch", role: "radiogroup", "aria-label": "Bytes of sites"});
    fillSwitch(choice, [[false, "received"], [true, "memory"]], this.isMemory, (isMemory) => {
      this.isMemory = isMemory;
      this.showSites();
    });
    byId("sites").replaceChildren(element("div", {class: "head"}, element("h3", {}, "Sites"), choice), this.bars,
      element("div", {class: "quiet"}, `${most > 0 ? `at most ${bytesText(most)} each` : "nothing"}${limit}`));
    this.drawBars();
  }

  drawBars() {
    const {width, height} = this.bars.getBoundingClientRect();
    if (width < 10 || !this.state) return;
    const context = sizedContext(this.bars, width, height);
    const [values, highest] = this.bytesOfSites();
    const limit = this.isMemory && this.model.limit !== null && this.model.limit < 3 * highest ? this.model.limit : 0;
    const most = Math.max(1, highest, limit);
    const floor = height - 18;
    const each = width / values.length;
    context.fillStyle = styleOf("--raised");
    context.fillRect(0, 0, width, floor);
    const count = Math.min(values.length, Math.floor(width));
    for (let bar = 0; bar < count; ++bar) {  // with more sites than pixels, the highest of those that share one
      const [begin, end] = [Math.floor(bar * values.length / count), Math.floor((bar + 1) * values.length / count)];
      const bytes = values.slice(begin, end).reduce((larger, next) => Math.max(larger, next), 0);
      const wide = Math.max(width / count, 1);
      const gap = wide > 5 ? Math.min(4, wide * 0.15) : 0;
      context.globalAlpha = this.marked >= 0 && (this.marked < begin || this.marked >= end) ? 0.25 : 1;
      context.fillStyle = siteColour(begin, values.length);
      const high = bytes / most * (floor - 6);
      context.fillRect(bar * wide + gap / 2, floor - high, wide - gap, high);
    }
    context.globalAlpha = 1;
    if (limit > 0) {
      context.fillStyle = styleOf("--text");
      context.fillRect(0, floor - limit / most * (floor - 6) - 1, width, 2);
    }
    context.fillStyle = styleOf("--quiet");
    context.font = "10px system-ui, 'DejaVu Sans', sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const step = [1, 2, 4, 8, 16, 32, 64].find((every) => every * each >= 20) || Math.ceil(values.length / 4);
    for (let site = 0; site < values.length; site += step) context.fillText(String(site), Math.max(4, (site + 0.5) * each), height - 8);
  }

  siteAt(event) {
    const bounds = this.bars.getBoundingClientRect();
    const {sites} = this.model;
    return Math.max(0, Math.min(sites - 1, Math.floor((event.clientX - bounds.left) / bounds.width * sites)));
  }

  hoverSite(event) {
    const site = this.siteAt(event);
    const [values] = this.bytesOfSites();
    showTip(`site ${site} ${this.isMemory ? "holds at most" : "receives"} ${bytesText(values[site])}`, event.clientX, event.clientY);
  }

  showTop() {
    const kind = this.ranking;
    const {plan, isFolded} = this.state;
    const {ids, at} = viewOf(this.model, isFolded);
    const ranked = ids.map((id) => ({id, figures: figuresOf(this.model, plan, id, isFolded)})).filter(({figures}) => figures[kind] > 0);
    ranked.sort((a, b) => b.figures[kind] - a.figures[kind] || a.id - b.id);
    const highest = ranked.length > 0 ? ranked[0].figures[kind] : 1;
    const chosen = ids[at[this.state.selected]];
    const items = ranked.slice(0, 10).map(({id, figures}) => element("li", {}, element("button", {
      type: "button", class: id === chosen ? "chosen" : "", title: this.model.vertices[id].formula, onclick: () => this.callbacks.select(id, true)},
    element("i", {class: "bar", style: `width:${100 * figures[kind] / highest}%;background:var(${kind === "bytes" ? "--blue-soft" : "--warm-soft"})`}),
    element("span", {class: "name"}, nameOf(this.model, id, figures)), element("span", {class: "number"}, kindText(kind, figures)),
    element("span", {class: "number quiet"}, partText(this.model, plan, kind, figures)))));
    const choice = element("div", {class: "switch", role: "radiogroup", "aria-label": "Rank vertices by"});
    fillSwitch(choice, kindsOf(this.model).map(([each, name]) => [each, name.replace(" time", "")]), kind, (other) => {
      this.ranking = other;
      this.showTop();
    });
    byId("top").replaceChildren(element("div", {class: "head"}, element("h3", {}, this.model.measured === null ? "Top vertices" : "Top"), choice),
      items.length > 0 ? element("ol", {}, ...items) : element("p", {class: "quiet"}, kind === "bytes" ? "nothing moves" : "nothing is computed"));
  }

  mark(site) {
    this.marked = site;
    this.drawBars();
  }
}
