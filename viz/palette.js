// Colours of costs and of sites, for the light and the dark page.

const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const styleOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const ramps = {
  light: {seconds: ["#eff2f5", "#fdebd9", "#fbc193", "#f08650", "#d24a22"], bytes: ["#eff2f5", "#e2edfc", "#aecdf6", "#6b9fea", "#2a66c9"]},
  dark: {seconds: ["#20272f", "#3a2d25", "#6d4226", "#b05e2b", "#f08146"], bytes: ["#20272f", "#223349", "#2b5384", "#3f7dca", "#6ea8ff"]},
};

function mixed(stops, t) {
  const at = Math.max(0, Math.min(1, t)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  const channel = (text, c) => parseInt(text.slice(1 + 2 * c, 3 + 2 * c), 16);
  return [0, 1, 2].map((c) => Math.round(channel(stops[i], c) + (at - i) * (channel(stops[i + 1], c) - channel(stops[i], c))));
}

const rampOf = (kind) => ramps[isDark() ? "dark" : "light"][kind === "bytes" ? "bytes" : "seconds"];

/** The colour of a cost that is this part of the highest; its root, so that small ones are told apart. */
function costColour(kind, part) {
  return mixed(rampOf(kind), Math.sqrt(Math.max(0, part || 0)));
}

const cssOf = ([r, g, b]) => `rgb(${r} ${g} ${b})`;
const isBright = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b > 140;

/** Neighbours in number are neighbours in hue, and differ in lightness. */
function siteColour(site, sites) {
  const hue = 25 + 335 * site / Math.max(sites, 1);
  const light = [0.77, 0.69, 0.85][sites > 6 ? site % 3 : 0];
  return `oklch(${light} ${light > 0.8 ? 0.1 : 0.125} ${hue.toFixed(1)})`;
}

const mostNamedSites = 64;
