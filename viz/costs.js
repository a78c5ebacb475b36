// What plans cost: all planners side by side, each site, and the most expensive vertices.

const totalColumns = [
  ["seconds", "time, as the machine's profile has it", (plan) => plan.cost.seconds, secondsText],
  ["bytes", "received by all sites together", (plan) => plan.cost.bytes, bytesText],
  ["busiest", "bytes that the site receives that receives most", (plan) => Math.max(0, ...plan.received.slice(0, 65536)), bytesText],
  ["floats", "floats delivered, as the implementation algebra counts them", (plan) => plan.cost.floats, countText],
  ["bound", "floats moved in the worst case", (plan) => plan.cost.bound, countText],
  ["planned", "how long planning took", (plan) => plan.plan_seconds, secondsText],
];

class Costs {
  constructor(model, callbacks) {
    [this.model, this.callbacks] = [model, callbacks];
    this.ranking = "seconds";
    this.marked = -1;
    this.bars = element("canvas", {role: "img", onpointermove: (event) => this.hoverSite(event), onpointerleave: () => showTip(""),
      onclick: (event) => this.callbacks.mark(this.siteAt(event) === this.marked ? -1 : this.siteAt(event))});
    new ResizeObserver(() => this.drawBars()).observe(this.bars);
  }

  show(state) {
    this.state = state;
    this.showTotals();
    this.showReceived();
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
        return element("td", {class: `number${isBest ? " best" : ""}`}, text(value), meter);
      })));
    const without = refused.map(({planner, reason}) => element("tr", {},
      element("td", {}, planner), element("td", {class: "quiet", colspan: totalColumns.length}, `no plan: ${reason}`)));
    byId("totals").replaceChildren(
      element("div", {class: "head"}, element("h3", {}, isCompared ? "Planners side by side" : "Totals"),
        element("span", {class: "quiet"}, plans.length > 1 ? "click to switch" : "")),
      element("table", {}, element("thead", {}, element("tr", {}, element("th", {}, "planner"),
        ...totalColumns.map(([name, title]) => element("th", {class: "number", title}, name)))), element("tbody", {}, ...rows, ...without)));
  }

  showReceived() {
    const {received} = this.model.plans[this.state.plan];
    const most = received.reduce((highest, bytes) => Math.max(highest, bytes), 0);
    this.bars.setAttribute("aria-label", `Bytes that each of ${received.length} sites receives; at most ${bytesText(most)}, by site ${received.indexOf(most)}`);
    byId("received").replaceChildren(
      element("div", {class: "head"}, element("h3", {}, "Received"), element("span", {class: "quiet"}, `\u2264 ${bytesText(most)} each`)), this.bars);
    this.drawBars();
  }

  drawBars() {
    const {width, height} = this.bars.getBoundingClientRect();
    if (width < 10 || !this.state) return;
    const context = sizedContext(this.bars, width, height);
    const {received} = this.model.plans[this.state.plan];
    const most = Math.max(1, received.reduce((highest, bytes) => Math.max(highest, bytes), 0));
    const floor = height - 18;
    const each = width / received.length;
    context.fillStyle = styleOf("--raised");
    context.fillRect(0, 0, width, floor);
    const count = Math.min(received.length, Math.floor(width));
    for (let bar = 0; bar < count; ++bar) {  // with more sites than pixels, the highest of those that share one
      const [begin, end] = [Math.floor(bar * received.length / count), Math.floor((bar + 1) * received.length / count)];
      const bytes = received.slice(begin, end).reduce((highest, next) => Math.max(highest, next), 0);
      const wide = Math.max(width / count, 1);
      const gap = wide > 5 ? Math.min(4, wide * 0.15) : 0;
      context.globalAlpha = this.marked >= 0 && (this.marked < begin || this.marked >= end) ? 0.25 : 1;
      context.fillStyle = siteColour(begin, received.length);
      const high = bytes / most * (floor - 6);
      context.fillRect(bar * wide + gap / 2, floor - high, wide - gap, high);
    }
    context.globalAlpha = 1;
    context.fillStyle = styleOf("--quiet");
    context.font = "10px system-ui, 'DejaVu Sans', sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const step = [1, 2, 4, 8, 16, 32, 64].find((every) => every * each >= 20) || Math.ceil(received.length / 4);
    for (let site = 0; site < received.length; site += step) context.fillText(String(site), Math.max(4, (site + 0.5) * each), height - 8);
  }

  siteAt(event) {
    const bounds = this.bars.getBoundingClientRect();
    const sites = this.model.plans[this.state.plan].received.length;
    return Math.max(0, Math.min(sites - 1, Math.floor((event.clientX - bounds.left) / bounds.width * sites)));
  }

  hoverSite(event) {
    const site = this.siteAt(event);
    showTip(`site ${site} receives ${bytesText(this.model.plans[this.state.plan].received[site])}`, event.clientX, event.clientY);
  }

  showTop() {
    const kind = this.ranking;
    const {vertices, cost} = this.model.plans[this.state.plan];
    const order = vertices.map((planned, id) => id).filter((id) => vertices[id][kind] > 0);
    order.sort((a, b) => vertices[b][kind] - vertices[a][kind] || a - b);
    const highest = order.length > 0 ? vertices[order[0]][kind] : 1;
    const text = kind === "seconds" ? secondsText : bytesText;
    const items = order.slice(0, 10).map((id) => element("li", {}, element("button", {
      type: "button", class: id === this.state.selected ? "chosen" : "", title: this.model.vertices[id].formula,
      onclick: () => this.callbacks.select(id, true)},
    element("i", {class: "bar", style: `width:${100 * vertices[id][kind] / highest}%;background:var(${kind === "seconds" ? "--warm-soft" : "--blue-soft"})`}),
    element("span", {class: "name"}, this.model.vertices[id].name), element("span", {class: "number"}, text(vertices[id][kind])),
    element("span", {class: "number quiet"}, shareText(vertices[id][kind] / cost[kind])))));
    const choice = element("div", {class: "switch", role: "radiogroup", "aria-label": "Rank vertices by"});
    fillSwitch(choice, [["seconds", "time"], ["bytes", "bytes"]], kind, (chosen) => {
      this.ranking = chosen;
      this.showTop();
    });
    byId("top").replaceChildren(element("div", {class: "head"}, element("h3", {}, "Top vertices"), choice),
      items.length > 0 ? element("ol", {}, ...items) : element("p", {class: "quiet"}, kind === "bytes" ? "nothing moves" : "nothing is computed"));
  }

  mark(site) {
    this.marked = site;
    this.drawBars();
  }
}
