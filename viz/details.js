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
      this.measured(vertex, planned), this.labels(vertex, planned, plan), vertex.isInput ? null : this.moves(vertex, planned, plan),
      this.runnerUp(vertex, planned, plan), this.choices(vertex, plan), this.chunks(vertex, planned, plan), this.neighbours(vertex),
      this.alike(vertex, plan)].filter((part) => part !== null));  // null would become text
    this.mark(this.marked);
  }

  title(vertex) {
    const tags = [vertex.isInput ? "input" : "", vertex.isOutput ? "output" : ""].filter((tag) => tag);
    const group = this.groupOf(vertex);
    if (group !== undefined) tags.push(`one of ${group.members.length} alike`);
    return element("h2", {}, vertex.name, ...tags.map((tag) => element("span", {class: "tag"}, tag)));
  }

  facts(vertex, planned, plan) {
    const fact = (value, text, title) => element("div", {title}, element("b", {}, value), element("span", {}, text));
    const elements = vertex.shape.reduce((product, extent) => product * extent, 1);
    const shape = fact(countText(elements), `${elements === 1 ? "element" : "elements"} ${vertex.dtype}`, vertex.shape.join(" \u00d7 ") || "one number");
    if (vertex.isInput) return element("div", {class: "facts"}, shape, fact(String(vertex.consumers.length), vertex.consumers.length === 1 ? "vertex reads it" : "vertices read it"));
    const part = (kind) => partText(this.model, plan, kind, planned) || "0 %";
    const kernel = vertex.kernel !== null ? [fact(vertex.kernel.name, "kernel", kernelText(vertex))]
      : this.model.hasTasks ? [fact("view", "no kernel", "lies in the memory of what it reads")] : [];
    return element("div", {class: "facts"},
      fact(secondsText(planned.seconds), `${part("seconds")} of time`), fact(bytesText(planned.bytes), `${part("bytes")} of bytes`),
      fact(bytesText(planned.memory), "most on a site", "held by the site that holds most while this is computed"),
      fact(countText(vertex.flops), "operations"), shape, ...kernel);
  }

  groupOf(vertex) {
    return [...this.model.alike.values()].find(({members}) => members.includes(vertex.id));
  }

  /** Of a run: what was predicted beside what was measured. */
  measured(vertex, planned) {
    if (vertex.measured === null) return null;
    const {seconds, bytes, memory} = vertex.measured;
    const row = (what, predicted, measured) => element("tr", {title: measuredTitle(this.model, what)}, element("td", {}, what), element("td", {class: "number"}, predicted),
      element("td", {class: "number"}, measured));
    return element("section", {}, element("h3", {}, "Predicted and measured"), element("table", {},
      element("thead", {}, element("tr", {}, element("th"), element("th", {class: "number"}, "predicted"), element("th", {class: "number"}, "measured"))),
      element("tbody", {}, row("seconds", secondsText(planned.seconds), secondsText(seconds)),
        row("bytes received", bytesText(planned.bytes), this.model.isShared ? "memory is shared" : bytesText(bytes)),
        row("memory", bytesText(planned.memory), bytesText(memory)))));
  }

  /** The best other ways to compute it, why the second is not better, and which labels cannot be cut. */
  runnerUp(vertex, planned, plan) {
    const [other, kind] = [planned.runnerUp, this.model.costKind];
    const text = {seconds: secondsText, bytes: bytesText}[kind] || ((floats) => `${countText(floats)} floats`);
    const isSame = ({more}) => Math.abs(more) <= 1e-9 * this.model.plans[plan].cost[kind];
    const moreText = (cut) => isSame(cut) ? "the same" : `${text(Math.abs(cut.more))} ${cut.more < 0 ? "less" : "more"}`;
    const parts = [];
    if (other !== null) {
      let why = ", to compute and reduce it";
      if (other.moving !== null) why = other.to === vertex.name ? `, to bring ${other.moving} here` : `, to bring it to ${other.to}`;
      const more = isSame(other) || other.more < 0 ? "" : other.more_there > other.more ? `: ${text(other.more_there)}${why}, and less elsewhere` : `; ${text(other.more_there)} of it${why}`;
      parts.push(element("p", {}, element("span", {class: "mono"}, this.otherText(other)), ` costs ${moreText(other)}${more}`));
    }
    const others = planned.otherCuts || [];
    if (others.length > 1) {
      const rows = others.map((cut) => element("tr", {}, element("td", {class: "mono"}, this.otherText(cut)),
        element("td", {class: "number"}, moreText(cut))));
      parts.push(element("table", {title: "what the whole plan would cost, exactly, with that one change"}, element("tbody", {},
        element("tr", {}, element("td", {class: "mono"}, cutText(vertex, planned)), element("td", {class: "number quiet"}, "this plan")), ...rows)));
    }
    if (planned.notCut.size > 0) {
      parts.push(element("ul", {class: "reasons quiet"}, ...[...planned.notCut].map(([label, reason]) => element("li", {},
        element("span", {class: "mono"}, label), ` is not cut: ${reason}`))));
    }
    return parts.length === 0 ? null : element("section", {}, element("h3", {}, other === null ? "No other cut" : "Next best"), ...parts);
  }

  /** "i=2 k=2, each on 4 sites". */
  otherText({sites, copies, scatter, all_reduced: allReduced}) {
    const cut = [...mapOf(sites)].map(([label, count]) => `${label}=${count}`).join(" ") || "whole";
    return cut + (allReduced ? ", result on each" : scatter ? `, result along ${scatter}` : "") + (copies ? `, each on ${copies} sites` : "");
  }

  /** The vertices of equal layers that are as this one. */
  alike(vertex, plan) {
    const group = this.groupOf(vertex);
    if (group === undefined) return null;
    const {seconds, bytes} = group.plans[plan];
    const took = group.measured === null ? "" : `; measured ${secondsText(group.measured.seconds)}`;
    const figures = vertex.isInput ? "" : `, together ${secondsText(seconds)} and ${bytesText(bytes)}${took}`;
    const others = group.members.filter((id) => id !== vertex.id);
    return element("section", {}, element("h3", {}, `${group.members.length} alike${figures}`), this.links(others));
  }

  links(ids) {
    const most = 40;
    const links = ids.slice(0, most).flatMap((id, at) => [at > 0 ? ", " : "", this.link(id)]);
    return element("div", {}, ...links, ids.length > most ? ` and ${ids.length - most} more` : "");
  }

  labels(vertex, planned, plan) {
    const reduced = new Set(reducedLabels(vertex));
    const links = (this.model.plans[plan].links || []).map(({name}) => name);
    const rows = vertex.labels.map((label) => {
      const [parts, sites] = [planned.parts.get(label) || 1, planned.sites.get(label) || 1];
      return element("tr", {}, element("td", {class: "mono"}, label), element("td", {class: "number"}, String(vertex.extents.get(label))),
        element("td", {class: "number"}, String(parts)), element("td", {class: "number"}, String(sites)),
        element("td", {class: "number"}, sites > 1 ? `+${planned.strides.get(label) || 0}` : ""),
        ...links.map((name) => element("td", {class: "number"}, String((planned.links.get(name) || new Map()).get(label) || ""))),
        element("td", {class: "quiet"}, reduced.has(label) ? "reduced" : ""));
    });
    const used = vertex.labels.reduce((product, label) => product * (planned.sites.get(label) || 1), 1) *
      planned.copies.reduce((product, {count}) => product * count, 1);
    const head = (text, title, isName) => element("th", {class: isName ? "" : "number", title}, text);
    return element("section", {}, element("h3", {}, `${vertex.isInput ? "Dimensions" : "Labels"}, ${counted(used, "site")} of ${this.model.sites}`),
      rows.length === 0 ? element("p", {class: "quiet"}, "none: a number") : element("table", {},
        element("thead", {}, element("tr", {}, head(vertex.isInput ? "dimension" : "label", "", true), head("extent"), head("parts"),
          head("sites"), head("step", "how far apart the numbers of neighbouring sites are"),
          ...links.map((name) => head(name, `among how many of the groups of sites behind ${name} it is cut`)), element("th"))),
        element("tbody", {}, ...rows)));
  }

  /** Each operand's bytes and why, then partial results. */
  moves(vertex, planned, plan) {
    const row = (what, why, bytes) => element("tr", {}, element("td", {}, what), element("td", {class: "quiet"}, why),
      element("td", {class: "number"}, bytes > 0 ? bytesText(bytes) : "0"));
    const rows = vertex.inputs.map((input, operand) => row(
      this.link(input), this.reason(vertex, operand, planned, plan), planned.operandBytes[operand]));
    const over = spreadReductions(vertex, planned).map(([label]) => label);
    const shared = planned.allReduced ? ", to each of them" : planned.scatter === null ? "" : `, shared out along ${planned.scatter}`;
    if (over.length > 0) rows.push(row("partial results", `reduced over ${over.join(", ")}${shared}`, planned.reducedBytes));
    return element("section", {}, element("h3", {}, `What moves: ${planned.bytes > 0 ? bytesText(planned.bytes) : "nothing"}`),
      rows.length > 0 ? element("table", {}, element("tbody", {}, ...rows)) : null);
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
    const halo = need.axes.some(({grid, window}) => window && grid > 1 && (window.low < 0 || window.high >= Math.abs(window.coefficient))) ? ", with halos" : "";
    return (copies > 1 ? `each chunk to ${copies} sites` : "cut anew") + halo;
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
    return element("section", {}, element("h3", {}, "Read by"), this.links(vertex.consumers));
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
