// What the site with the peak holds while vertex after vertex is computed, and for what.

const heldKinds = [
  ["inputs", "--held-inputs", ({as}, vertex) => as === "stored" && vertex.isInput],
  ["results", "--held-results", ({as}, vertex) => as === "stored" && !vertex.isInput],
  ["copies from other sites", "--held-copies", ({as}) => as === "copy"],
  ["partial results", "--held-partial", ({as}) => as === "partial" || as === "between"],
];
const heldText = {stored: "", copy: "copied ", partial: "partial results of ", between: "between the joins of "};

class MemoryPane {
  constructor(holder, model, callbacks) {
    [this.holder, this.model, this.callbacks] = [holder, model, callbacks];
    this.computed = model.vertices.filter(({isInput}) => !isInput).map(({id}) => id);
  }

  /** What the plan's peak site holds while a vertex is computed, the largest first. */
  heldAt(plan, id) {
    return plan.held.filter(({from, to}) => from <= id && id <= to).sort((a, b) => b.bytes - a.bytes);
  }

  /** By kind of what is held, bytes at each computed vertex: those that come and go are added up on the way. */
  bands(plan) {
    const {vertices} = this.model;
    const of = new Map(vertices.map((vertex) => [vertex.name, vertex]));
    return heldKinds.map(([name, colour, isOne]) => {
      const change = new Array(vertices.length + 1).fill(0);
      for (const held of plan.held) {
        if (!isOne(held, of.get(held.name))) continue;
        change[held.from] += held.bytes;
        change[held.to + 1] -= held.bytes;
      }
      let live = 0;
      const bytes = vertices.map((vertex, id) => (live += change[id]));
      return {name, colour, bytes: this.computed.map((id) => bytes[id])};
    }).filter(({bytes}) => bytes.some((each) => each > 0));
  }

  show({plan: at, selected}) {
    const plan = this.model.plans[at];
    const {predicted, site, vertex} = plan.peak_memory;
    [this.plan, this.selected] = [plan, selected];
    const most = this.computed.map((id) => plan.vertices[id].memory);
    const peak = this.model.vertices.find(({name}) => name === vertex);
    const head = element("div", {class: "head"}, element("h3", {}, "Memory, vertex by vertex"), element("span", {class: "quiet"},
      "hover: which tensors; click or arrow keys: the vertex"));
    if (this.computed.length === 0) return this.holder.replaceChildren(head, element("p", {class: "quiet"}, "nothing is computed"));
    const bands = this.bands(plan);
    const toPeak = element("button", {class: "link", type: "button", onclick: () => this.callbacks.select(peak.id, true)}, vertex);
    const legend = element("p", {class: "quiet keys"}, `Peak ${bytesText(predicted)} on site ${site} at `, toPeak,
      ...bands.map(({name, colour}) => element("span", {}, element("i", {style: `background:var(${colour})`}), ` ${name}`)),
      element("span", {}, element("i", {class: "line"}), bands.length > 0 ? " the most on any site" : " in this process"));
    this.holder.replaceChildren(head, this.chart(bands, most, peak.id), legend);
  }

  chart(bands, most, peak) {
    const {limit} = this.model;
    const isShown = limit !== null && limit < 3 * Math.max(...most);
    const highest = Math.max(1, ...most, isShown ? limit : 0);
    const count = most.length;
    const [high, left] = [100, (at) => 1000 * at / count];
    const y = (bytes) => high - bytes / highest * (high - 4);
    const steps = (values) => values.map((value, at) => `L${left(at)} ${y(value)}L${left(at + 1)} ${y(value)}`).join("");
    let below = most.map(() => 0);
    const areas = bands.map(({colour, bytes}) => {
      const above = below.map((each, at) => each + bytes[at]);
      const back = below.map((value, at) => `L${left(at + 1)} ${y(value)}L${left(at)} ${y(value)}`).reverse().join("");
      const path = drawing("path", {d: `M0 ${y(below[0])}${steps(above)}${back}Z`, style: `fill:var(${colour})`});
      below = above;
      return path;
    });
    const line = drawing("path", {d: `M0 ${y(most[0])}${steps(most)}`, class: "most"});
    const mark = (id, kind) => {
      const at = this.computed.indexOf(id);
      return at < 0 ? [] : [drawing("rect", {x: left(at), width: Math.max(1000 / count, 2), y: 0, height: high, class: kind})];
    };
    const allowed = isShown ? [drawing("path", {d: `M0 ${y(limit)}L1000 ${y(limit)}`, class: "limit"})] : [];
    const chart = drawing("svg", {viewBox: "0 0 1000 100", preserveAspectRatio: "none", class: "chart", role: "application", tabindex: "0",
      "aria-label": `Bytes held while each of ${counted(count, "vertex", "vertices")} is computed`},
    ...mark(this.selected, "selected"), ...areas, line, ...allowed, ...mark(peak, "peak"));
    const at = (event) => {
      const box = chart.getBoundingClientRect();
      return this.computed[Math.max(0, Math.min(count - 1, Math.floor((event.clientX - box.left) / box.width * count)))];
    };
    chart.addEventListener("pointermove", (event) => showTip(this.textAt(at(event)), event.clientX, event.clientY));
    chart.addEventListener("pointerleave", () => showTip(""));
    chart.addEventListener("click", (event) => this.callbacks.select(at(event), true));
    chart.addEventListener("keydown", (event) => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      const next = Math.max(0, Math.min(count - 1, this.computed.indexOf(this.selected) + step));
      this.callbacks.select(this.computed[next], true);
      this.holder.querySelector(".chart").focus();
    });
    return chart;
  }

  /** What is held while a vertex is computed. */
  textAt(id) {
    const shown = 8;
    const held = this.heldAt(this.plan, id);
    const lines = held.slice(0, shown).map(({name, as, bytes}) => `${heldText[as]}${name} ${bytesText(bytes)}`);
    if (held.length > shown) lines.push(`and ${held.length - shown} more`);
    const bytes = held.reduce((sum, each) => sum + each.bytes, 0);
    const {memory} = this.plan.vertices[id];
    const head = held.length === 0 ? `${this.model.vertices[id].name}: ${bytesText(memory)}`
      : `${this.model.vertices[id].name}: ${bytesText(bytes)} on site ${this.plan.peak_memory.site}` +
        (memory > bytes ? `, ${bytesText(memory)} on another` : "");
    return [head, ...lines].join("\n");
  }
}
