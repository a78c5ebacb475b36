// Who sends how many bytes to whom: sites, or the groups of sites behind a link.

const matrixMargin = 18;  // for the numbers of sites

class MessagesPane {
  constructor(holder, model) {
    [this.holder, this.model] = [holder, model];
    this.together = 0;  // sites that are told of together, as chosen; 0 for as few as there are figures of
    this.canvas = element("canvas", {role: "img", onpointermove: (event) => this.hover(event), onpointerleave: () => showTip("")});
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  /** So many sites can be told of together: [sites, name]. */
  foldings(plan) {
    const {sites_together: least} = plan.sent;
    const own = [least, least === 1 ? "sites" : `${least} sites each`];
    const links = (plan.links || []).filter(({sites}) => sites > least && sites < this.model.sites && sites % least === 0);
    return [own, ...links.reverse().map(({name, sites}) => [sites, `behind ${name}`])];
  }

  /** Bytes [from][to] between groups of so many sites. */
  folded(plan, together) {
    const {sites_together: least, bytes} = plan.sent;
    const groups = Math.ceil(this.model.sites / together);
    const sums = Array.from({length: groups}, () => new Array(groups).fill(0));
    bytes.forEach((row, from) => row.forEach((sent, to) => {
      sums[Math.floor(from * least / together)][Math.floor(to * least / together)] += sent;
    }));
    return sums;
  }

  show({plan: at}) {
    const plan = this.model.plans[at];
    const title = element("h3", {}, "Who sends to whom");
    this.sums = null;
    if (plan.sent === null) {
      const why = this.model.sites === 1 ? "there is one site: nothing is sent" : "not counted: the plan has more than 65,536 chunks";
      return this.holder.replaceChildren(element("div", {class: "head"}, title), element("p", {class: "quiet"}, why));
    }
    const foldings = this.foldings(plan);
    if (!foldings.some(([sites]) => sites === this.together)) this.together = foldings[0][0];
    this.sums = this.folded(plan, this.together);
    const choice = element("div", {class: "switch", role: "radiogroup", "aria-label": "Sites told of together"});
    fillSwitch(choice, foldings, this.together, (together) => {
      this.together = together;
      this.show({plan: at});
    });
    choice.hidden = foldings.length === 1;
    this.canvas.setAttribute("aria-label", `Bytes from each of ${counted(this.sums.length, "group")} of sites to each`);
    this.holder.replaceChildren(element("div", {class: "head"}, title, choice),
      element("div", {class: "matrix"}, this.canvas, element("div", {class: "quiet"}, ...this.told().map((text) => element("p", {}, text)))));
    this.draw();
  }

  /** Who they are. */
  nameOf(group) {
    const first = group * this.together;
    const last = Math.min(first + this.together, this.model.sites) - 1;
    return first === last ? `site ${first}` : `sites ${first} to ${last}`;
  }

  told() {
    const flat = this.sums.flatMap((row, from) => row.map((bytes, to) => ({from, to, bytes})));
    const all = flat.reduce((sum, {bytes}) => sum + bytes, 0);
    if (all === 0) return ["nothing is sent"];
    const most = flat.reduce((larger, next) => next.bytes > larger.bytes ? next : larger);
    const pairs = flat.filter(({bytes}) => bytes > 0).length;
    const inside = flat.filter(({from, to}) => from === to).reduce((sum, {bytes}) => sum + bytes, 0);
    const words = this.together === 1 ? "pairs of sites" : "pairs of groups";
    return [`${bytesText(all)} in all, between ${pairs} of ${this.sums.length ** 2} ${words}`,
      `most: ${bytesText(most.bytes)} from ${this.nameOf(most.from)} to ${most.from === most.to ? "each other" : this.nameOf(most.to)}`,
      ...(this.together > 1 ? [`${bytesText(inside)} stay inside groups`] : []), "rows send, columns receive"];
  }

  draw() {
    const {width, height} = this.canvas.getBoundingClientRect();
    if (width < 10 || !this.sums) return;
    const context = sizedContext(this.canvas, width, height);
    const count = this.sums.length;
    const most = Math.max(1, ...this.sums.flat());
    const each = (width - matrixMargin) / count;
    const gap = each > 5 ? 1 : 0;
    this.sums.forEach((row, from) => row.forEach((bytes, to) => {
      context.fillStyle = bytes > 0 ? cssOf(costColour("bytes", 0.04 + 0.96 * bytes / most)) : styleOf("--raised");
      context.fillRect(matrixMargin + to * each, matrixMargin + from * each, each - gap, each - gap);
    }));
    context.fillStyle = styleOf("--quiet");
    context.font = "9px system-ui, 'DejaVu Sans', sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const step = [1, 2, 4, 8, 16, 32].find((every) => every * each >= 16) || count;
    for (let group = 0; group < count; group += step) {
      const [at, site] = [matrixMargin + (group + 0.5) * each, String(group * this.together)];
      context.fillText(site, at, matrixMargin / 2);
      context.fillText(site, matrixMargin / 2, at);
    }
  }

  textAt(from, to) {
    const bytes = this.sums[from][to];
    const all = this.sums.flat().reduce((sum, next) => sum + next, 0);
    const sent = bytes > 0 ? `${bytesText(bytes)}, ${shareText(bytes / all)} of all` : "nothing";
    return `${this.nameOf(from)} to ${from === to && this.together > 1 ? "each other" : this.nameOf(to)}: ${sent}`;
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect();
    const at = (place, length) => Math.max(0, Math.min(this.sums.length - 1,
      Math.floor((place - matrixMargin) / (length - matrixMargin) * this.sums.length)));
    showTip(this.textAt(at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)), event.clientX, event.clientY);
  }
}
