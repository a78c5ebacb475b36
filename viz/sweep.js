// Plans for several numbers of sites or machines: seconds and bytes as curves, and all figures.

const data = JSON.parse(byId("data").textContent);
const planned = data.sweep.filter(({refused}) => refused === undefined);
const isOneMachine = new Set(data.sweep.map(({machine}) => machine)).size === 1;
const curveOf = ({machine, planner}) => isOneMachine ? planner : `${planner} on ${machine}`;
const curves = [...new Set(data.sweep.map(curveOf))];
const colourOf = (curve) => siteColour(curves.indexOf(curve), curves.length);

/** Places between the least and the most of some figures, evenly by their logarithm; `text` of some of them. */
function scaleOf(values, from, to) {
  const [low, high] = [Math.log(Math.min(...values)), Math.log(Math.max(...values))];
  return (value) => high > low ? from + (Math.log(value) - low) / (high - low) * (to - from) : (from + to) / 2;
}

/** A figure of all plans over the number of sites, both by logarithm; `text` says it. */
function showCurves(holder, title, figure, text) {
  const drawn = planned.filter((plan) => plan[figure] > 0);
  const head = element("div", {class: "head"}, element("h3", {}, title), element("span", {class: "quiet"}, "both axes logarithmic"));
  const none = planned.length - drawn.length;
  const told = none === 0 ? [] : [element("p", {class: "quiet"}, `${counted(none, "plan moves", "plans move")} nothing`)];
  if (drawn.length === 0) return holder.replaceChildren(head, ...told);
  const [left, right, top, bottom] = [64, 590, 14, 226];
  const x = scaleOf(planned.map(({sites}) => sites), left + 12, right - 12);
  const y = scaleOf(drawn.map((plan) => plan[figure]), bottom - 8, top + 8);
  const label = (at, height, words, anchor) => drawing("text", {x: at, y: height, "text-anchor": anchor}, words);
  const columns = [...new Set(planned.map(({sites}) => sites))].map((sites) => drawing("g", {},
    drawing("path", {d: `M${x(sites)} ${top}V${bottom}`, class: "grid"}), label(x(sites), bottom + 16, String(sites), "middle")));
  const ends = [Math.min, Math.max].map((end) => end(...drawn.map((plan) => plan[figure])));
  const rows = [...new Set(ends)].map((value) => drawing("g", {},
    drawing("path", {d: `M${left} ${y(value)}H${right}`, class: "grid"}), label(left - 6, y(value) + 4, text(value), "end")));
  const lines = curves.flatMap((curve) => {
    const points = drawn.filter((plan) => curveOf(plan) === curve).sort((a, b) => a.sites - b.sites);
    const path = drawing("path", {d: points.map((plan, at) => `${at === 0 ? "M" : "L"}${x(plan.sites)} ${y(plan[figure])}`).join(""), class: "curve",
      style: `stroke:${colourOf(curve)}`});
    const dots = points.map((plan) => drawing("circle", {cx: x(plan.sites), cy: y(plan[figure]), r: 4.5, style: `fill:${colourOf(curve)}`},
      drawing("title", {}, `${curve}, ${counted(plan.sites, "site")}: ${text(plan[figure])}`)));
    return [path, ...dots];
  });
  const names = element("p", {class: "quiet keys"}, ...curves.map((curve) => element("span", {},
    element("i", {style: `background:${colourOf(curve)}`}), ` ${curve}`)), "over the number of sites");
  holder.replaceChildren(head, drawing("svg", {viewBox: "0 0 600 250", class: "curves", role: "img", "aria-label": title}, ...columns, ...rows, ...lines), names, ...told);
}

function showTable(holder) {
  const hasPrice = planned.some(({dollars}) => dollars !== undefined);
  const columns = [["seconds", ({seconds}) => secondsText(seconds)], ["of moving", (plan) => secondsText(plan.moving_seconds)],
    ["moved", ({bytes}) => bytesText(bytes)], ["at most/site", (plan) => bytesText(plan.most_received)], ["peak memory", (plan) => bytesText(plan.peak_memory)],
    ["sites computing", (plan) => plan.sites_computing[0] === plan.sites_computing[1] ? String(plan.sites_computing[0]) : plan.sites_computing.join(" to ")],
    ...(hasPrice ? [["$, 1,000 runs", ({dollars}) => dollars === undefined ? "" : String(Number((1000 * dollars).toPrecision(3)))]] : [])];
  const rows = data.sweep.map((plan) => element("tr", {}, element("td", {}, plan.machine), element("td", {class: "number"}, String(plan.sites)), element("td", {}, plan.planner),
    ...(plan.refused === undefined ? columns.map(([, text]) => element("td", {class: "number"}, text(plan)))
      : [element("td", {class: "quiet", colspan: columns.length}, `no plan: ${plan.refused}`)])));
  const enough = data.enough.map(({machine, planner, sites, of}) => element("p", {},
    `On ${machine}, ${sites === 1 ? "1 site is" : `${sites} sites are`} within 5 % as fast as the best of up to ${of}, planned by ${planner}.`));
  holder.replaceChildren(element("div", {class: "head"}, element("h3", {}, "All plans")), element("table", {},
    element("thead", {}, element("tr", {}, element("th", {}, "machine"), element("th", {class: "number"}, "sites"), element("th", {}, "planner"),
      ...columns.map(([name]) => element("th", {class: "number"}, name)))), element("tbody", {}, ...rows)), ...enough);
}

document.title = `${data.program}: plans by number of sites`;
byId("program").textContent = data.program;
byId("facts").textContent = `${counted(data.sweep.length, "plan")} by number of sites`;
showCurves(byId("seconds"), "Seconds", "seconds", secondsText);
showCurves(byId("bytes"), "Bytes received", "bytes", bytesText);
showTable(byId("table"));
document.documentElement.dataset.ready = "1";
