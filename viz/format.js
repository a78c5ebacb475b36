// Numbers and elements. Text from programs only ever enters the page through textContent.

function inUnits(value, units, base) {
  let unit = 0;
  while (value >= 999.5 && unit + 1 < units.length) {
    value /= base;
    ++unit;
  }
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}

/** "872 MB", as the command writes it. */
function bytesText(bytes) {
  if (!Number.isFinite(bytes)) return "?";
  return inUnits(bytes, ["B", "kB", "MB", "GB", "TB", "PB", "EB"], 1000);
}

function secondsText(seconds) {
  if (!Number.isFinite(seconds)) return "?";
  return seconds === 0 ? "0 s" : inUnits(seconds * 1e9, ["ns", "\u00b5s", "ms", "s"], 1000);
}

function countText(count) {
  if (!Number.isFinite(count)) return "?";
  return count < 1e4 ? String(Number(count.toPrecision(4))) : inUnits(count, ["", "k", "M", "G", "T", "P", "E"], 1000);
}

function shareText(share) {
  if (!Number.isFinite(share)) return "";
  return `${share >= 0.0995 ? (100 * share).toFixed(0) : (100 * share).toFixed(1)} %`;
}

function counted(count, word, several = `${word}s`) {
  return `${count} ${count === 1 ? word : several}`;
}

/** element("td", {class: "number"}, "text", child, ...) */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "style") made.style.cssText = value;  // written by us alone
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined) made.append(child);  // a string becomes a text node
  }
  return made;
}

/** An SVG element. */
function drawing(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const byId = (id) => document.getElementById(id);

/** Shows text beside the pointer, or nothing. */
function showTip(text, x, y) {
  const tip = byId("tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - box.height - 6))}px`;
}

/** A canvas's context in CSS pixels, however dense the screen is. */
function sizedContext(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Buttons of which one is chosen; arrow keys go from one to the next. */
function fillSwitch(holder, choices, chosen, choose) {
  holder.replaceChildren(...choices.map(([key, text], at) => element("button", {
    type: "button", role: "radio", "aria-checked": String(key === chosen), tabindex: key === chosen ? "0" : "-1",
    onclick: () => choose(key),
    onkeydown: (event) => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      const next = (at + step + choices.length) % choices.length;
      choose(choices[next][0]);
      holder.children[next].focus();
    },
  }, text)));
}
