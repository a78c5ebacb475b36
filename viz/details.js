// What there is to know of the selected vertex.

class Details {
  constructor(holder, model, callbacks) {
    [this.holder, this.model, this.callbacks] = [holder, model, callbacks];
    this.grids = [];
    this.marked = -1;
  }

  show({plan, selected}) {
    const vertex = this.model.vertices[selected];
    const planned = this.model.plans[plan].vertices[selected];
    this.grids = [];
    this.holder.scrollTop = 0;
    this.holder.replaceChildren(...[
      this.title(vertex), element("p", {class: "formula mono"}, vertex.formula), this.facts(vertex, planned, plan),
      this.labels(vertex, planned), vertex.isInput ? null : this.moves(vertex, planned, plan), this.choices(vertex, plan), this.chunks(vertex, planned, plan),
      this.neighbours(vertex)].filter((part) => part !== null));  // null would become text
    this.mark(this.marked);
  }

  title(vertex) {
    const tags = [vertex.isInput ? "input" : "", vertex.isOutput ? "output" : ""].filter((tag) => tag);
    return element("h2", {}, vertex.name, ...tags.map((tag) => element("span", {class: "tag"}, tag)));
  }

  facts(vertex, planned, plan) {
    const {cost} = this.model.plans[plan];
    const fact = (value, text, title) => element("div", {title}, element("b", {}, value), element("span", {}, text));
    const elements = vertex.shape.reduce((product, extent) => product * extent, 1);
    const shape = fact(vertex.shape.length > 0 ? countText(elements) : "1", `elements ${vertex.dtype}`, vertex.shape.join(" \u00d7 "));
    if (vertex.isInput) return element("div", {class: "facts"}, shape, fact(String(vertex.consumers.length), "vertices read it"));
    return element("div", {class: "facts"},
      fact(secondsText(planned.seconds), `${shareText(cost.seconds > 0 ? planned.seconds / cost.seconds : 0)} of time`),
      fact(bytesText(planned.bytes), `${shareText(cost.bytes > 0 ? planned.bytes / cost.bytes : 0)} of bytes`),
      fact(countText(vertex.flops), "operations", vertex.kernel), shape);
  }

  labels(vertex, planned) {
    const reduced = new Set(reducedLabels(vertex));
    const rows = vertex.labels.map((label) => {
      const [parts, sites] = [planned.parts.get(label) || 1, planned.sites.get(label) || 1];
      return element("tr", {}, element("td", {class: "mono"}, label), element("td", {class: "number"}, String(vertex.extents.get(label))),
        element("td", {class: "number"}, String(parts)), element("td", {class: "number"}, String(sites)),
        element("td", {class: "number"}, sites > 1 ? `+${planned.strides.get(label) || 0}` : ""),
        element("td", {class: "quiet"}, reduced.has(label) ? "reduced" : ""));
    });
    const used = vertex.labels.reduce((product, label) => product * (planned.sites.get(label) || 1), 1);
    const head = (text, title, isName) => element("th", {class: isName ? "" : "number", title}, text);
    return element("section", {}, element("h3", {}, `${vertex.isInput ? "Dimensions" : "Labels"}, ${counted(used, "site")} of ${this.model.sites}`),
      rows.length === 0 ? element("p", {class: "quiet"}, "none: a number") : element("table", {},
        element("thead", {}, element("tr", {}, head(vertex.isInput ? "dimension" : "label", "", true), head("extent"), head("parts"),
          head("sites"), head("step", "how far apart the numbers of neighbouring sites are"), element("th"))),
        element("tbody", {}, ...rows)));
  }

  /** Each operand's bytes and why, then partial results. */
  moves(vertex, planned, plan) {
    const row = (what, why, bytes) => element("tr", {}, element("td", {}, what), element("td", {class: "quiet"}, why),
      element("td", {class: "number"}, bytes > 0 ? bytesText(bytes) : "0"));
    const rows = vertex.inputs.map((input, operand) => row(
      this.link(input), this.reason(vertex, operand, planned, plan), planned.operandBytes[operand]));
    const over = spreadReductions(vertex, planned).map(([label]) => label);
    const shared = planned.scatter === null ? "" : `, shared out along ${planned.scatter}`;
    if (over.length > 0) rows.push(row("partial results", `reduced over ${over.join(", ")}${shared}`, planned.reducedBytes));
    return element("section", {}, element("h3", {}, `What moves: ${bytesText(planned.bytes)}`), element("table", {}, element("tbody", {}, ...rows)));
  }

  /** What the other planners do with it. */
  choices(vertex, chosen) {
    if (this.model.plans.length === 1) return null;
    const rows = this.model.plans.map((plan, at) => {
      const planned = plan.vertices[vertex.id];
      return element("tr", {"aria-selected": String(at === chosen), onclick: () => this.callbacks.choosePlan(at)}, element("td", {}, plan.planner),
        element("td", {class: "mono quiet"}, cutText(vertex, planned)), element("td", {class: "number"}, vertex.isInput ? "" : secondsText(planned.seconds)),
        element("td", {class: "number"}, vertex.isInput ? "" : bytesText(planned.bytes)));
    });
    return element("section", {}, element("h3", {}, "By planner"), element("table", {class: "choices"}, element("tbody", {}, ...rows)));
  }

  reason(vertex, operand, planned, plan) {
    const have = this.resultOf(vertex.inputs[operand], plan);
    const need = neededLayout(this.model, vertex, operand, planned);
    const copies = need.copies.reduce((product, {count}) => product * count, 1);
    if (sameLayout(have, need)) return "lies where it is needed";
    if (planned.operandBytes[operand] === 0) return "is there already";
    return copies > 1 ? `each chunk to ${copies} sites` : "cut anew";
  }

  resultOf(id, plan) {
    return resultLayout(this.model.vertices[id], this.model.plans[plan].vertices[id]);
  }

  chunks(vertex, planned, plan) {
    const {sites} = this.model;
    const blocks = [element("div", {class: "operand first"}, element("div", {class: "grids"}, chunkFigure(
      vertex.isInput ? "as it lies" : `${vertex.name}, the result`, resultLayout(vertex, planned), sites, this.grids)))];
    vertex.inputs.forEach((input, operand) => {
      const have = this.resultOf(input, plan);
      const need = neededLayout(this.model, vertex, operand, planned);
      have.axes.forEach((axis, dim) => { axis.label = need.axes[dim].label || axis.label; });
      const name = this.model.vertices[input].name;
      const figures = sameLayout(have, need) ? [[`${name}, in place`, need]]
        : [[`${name}, as it is needed`, need], [`${name}, as it lies`, have]];
      blocks.push(element("div", {class: "operand"}, element("div", {class: "grids"},
        ...figures.map(([caption, layout]) => chunkFigure(caption, layout, sites, this.grids)))));
    });
    return element("section", {}, element("h3", {}, "Chunks by site"), this.legend(), ...blocks);
  }

  legend() {
    const {sites} = this.model;
    if (sites > mostNamedSites) {
      const stops = Array.from({length: 25}, (_, at) => siteColour(Math.round(at / 24 * (sites - 1)), sites));
      return element("div", {class: "quiet"}, "site 0 ", element("i", {class: "ramp", style:
        `display:inline-block;width:200px;vertical-align:-1px;background:linear-gradient(90deg,${stops.join(",")})`}), ` site ${sites - 1}`);
    }
    const buttons = Array.from({length: sites}, (_, site) => element("button", {
      type: "button", "aria-pressed": "false", "aria-label": `show only site ${site}`, title: `site ${site}: click to show only its chunks`,
      style: `background:${siteColour(site, sites)}`,
      onclick: () => this.callbacks.mark(this.marked === site ? -1 : site)}, String(site)));
    this.siteButtons = buttons;
    return element("div", {class: "sites", role: "group", "aria-label": "Sites"}, ...buttons);
  }

  neighbours(vertex) {
    if (vertex.consumers.length === 0) return null;
    const shown = vertex.consumers.slice(0, 40);
    const links = shown.flatMap((id, at) => [at > 0 ? ", " : "", this.link(id)]);
    const more = vertex.consumers.length > shown.length ? ` and ${vertex.consumers.length - shown.length} more` : "";
    return element("section", {}, element("h3", {}, "Read by"), element("div", {}, ...links, more));
  }

  link(id) {
    return element("button", {class: "link", type: "button", onclick: () => this.callbacks.select(id)}, this.model.vertices[id].name);
  }

  mark(site) {
    this.marked = site;
    for (const grid of this.grids) grid.mark(site);
    (this.siteButtons || []).forEach((button, at) => button.setAttribute("aria-pressed", String(at === site)));
  }

  redraw() {
    for (const grid of this.grids) grid.draw();
  }
}
