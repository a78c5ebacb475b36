// By what each planner is worse than the fastest, or better.

class ComparedPane {
  constructor(holder, model, callbacks) {
    [this.holder, this.model, this.callbacks] = [holder, model, callbacks];
  }

  show({plan: chosen}) {
    const {plans} = this.model;
    const fastest = plans.reduce((best, plan) => plan.cost.seconds < best.cost.seconds ? plan : best);
    const rows = plans.map((plan, at) => element("tr", {"aria-selected": String(at === chosen), onclick: () => this.callbacks.choosePlan(at)},
      element("td", {}, plan.planner, this.proof(plan)), ...(plan === fastest ? this.figures(plan) : this.differences(plan, fastest))));
    const columns = [["time", "modelled seconds"], ["moving", "of the time, spent receiving"], ["the rest", "of the time: computing, adding up, copying"],
      ["bytes", "received by all sites together"], ["memory", "of the site that holds most"]];
    this.holder.replaceChildren(element("div", {class: "head"}, element("h3", {}, `Against ${fastest.planner}, the fastest`),
      element("span", {class: "quiet"}, "click to switch")),
    element("table", {class: "choices"}, element("thead", {}, element("tr", {}, element("th", {}, "planner"),
      ...columns.map(([name, title]) => element("th", {class: "number", title}, name)), element("th", {title: "the vertex that takes most of the difference"}, "most of it in"))),
    element("tbody", {}, ...rows)));
  }

  /** What is known of how far a plan is from the best there is. */
  proof({cost, at_least_seconds: least}) {
    if (least === undefined || cost.steps !== undefined) return "";  // it is that of an average step
    const above = 100 * (cost.seconds / least - 1);
    return element("span", {class: "quiet", title: `every plan that best looks at takes ${secondsText(least)} at least`},
      above < 1e-4 ? " proven" : ` within ${above.toPrecision(2)} %`);
  }

  figures({cost, moving_seconds: moving, peak_memory: peak}) {
    const texts = [secondsText(cost.seconds), secondsText(moving), secondsText(cost.seconds - moving), bytesText(cost.bytes), bytesText(peak.predicted)];
    return [...texts.map((text) => element("td", {class: "number"}, text)), element("td", {})];
  }

  differences(plan, than) {
    const moving = plan.moving_seconds - than.moving_seconds;
    const seconds = plan.cost.seconds - than.cost.seconds;
    const difference = (value, text) => element("td", {class: `number${value > 0 ? " over" : value < 0 ? " best" : " quiet"}`},
      value === 0 ? "the same" : `${value > 0 ? "+" : "\u2212"}${text(Math.abs(value))}`);
    return [difference(seconds, secondsText), difference(moving, secondsText), difference(seconds - moving, secondsText),
      difference(plan.cost.bytes - than.cost.bytes, bytesText), difference(plan.peak_memory.predicted - than.peak_memory.predicted, bytesText),
      element("td", {}, this.mostOf(plan, than))];
  }

  /** Where a plan loses most: vertices of equal layers together. */
  mostOf(plan, than) {
    const at = this.model.plans.indexOf(plan);
    const other = this.model.plans.indexOf(than);
    const isFolded = this.model.alike.size > 0;
    const lost = viewOf(this.model, isFolded).ids.map((id) => {
      const figures = figuresOf(this.model, at, id, isFolded);
      return {id, figures, more: figures.seconds - figuresOf(this.model, other, id, isFolded).seconds};
    });
    const most = lost.reduce((larger, next) => next.more > larger.more ? next : larger, {more: 0});
    if (!(most.more > 0)) return "";
    return element("button", {class: "link", type: "button", onclick: (event) => {
      event.stopPropagation();
      this.callbacks.select(most.id, true);
    }}, `${nameOf(this.model, most.id, most.figures)}, +${secondsText(most.more)}`);
  }
}
