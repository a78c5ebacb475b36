// Chunk grids: which chunk of a tensor lies on which site. Two dimensions are drawn; of the others there are small
// multiples, or a slider where those would be too many.

const mostMultiples = 8;

/** "8 x 4 chunks on 16 sites, 2 copies of each" */
function layoutText(layout) {
  const parts = layout.axes.map((axis) => axis.parts);
  const chunks = parts.reduce((product, each) => product * each, 1);
  const copies = layout.copies.reduce((product, {count}) => product * count, 1);
  const grids = new Map(layout.axes.filter((axis) => axis.grid > 1).map((axis) => [axis.stride, axis.grid]));
  const sites = [...grids.values()].reduce((product, each) => product * each, copies);
  const cut = chunks === 1 ? "whole" : `${parts.join(" \u00d7 ")} chunks`;
  return `${cut} on ${counted(sites, "site")}${copies > 1 ? `, ${copies} copies of each` : ""}`;
}

/** The two dimensions to draw, rows first: those that are cut, else the longest. */
function drawnDimensions(axes) {
  const order = axes.map((axis, dim) => dim);
  order.sort((a, b) => (axes[b].parts > 1) - (axes[a].parts > 1) ||
    (axes[a].parts > 1 ? a - b : axes[b].extent - axes[a].extent || a - b));
  return order.slice(0, 2).sort((a, b) => a - b);
}

/** "k 250..499 of 1000, chunk 1 of 4" */
function chunkText(axis, part) {
  const [begin, end] = chunkRange(axis, part);
  const name = axis.label || `dimension ${axis.dim}`;
  return axis.parts === 1 ? `${name}: all ${axis.extent}` : `${name}: chunk ${part} of ${axis.parts}, elements ${begin} to ${end - 1}`;
}

/** One drawing: the chunks of two dimensions, where the others have the parts in `fixed`. */
class ChunkGrid {
  constructor(layout, fixed, size, sites, title) {
    [this.layout, this.fixed, this.sites] = [layout, fixed, sites];
    const drawn = drawnDimensions(layout.axes);
    const single = {dim: -1, extent: 1, label: "", parts: 1, unit: 1, grid: 1, stride: 0};
    this.columnAxis = drawn.length > 0 ? layout.axes[drawn[drawn.length - 1]] : single;
    this.rowAxis = drawn.length > 1 ? layout.axes[drawn[0]] : single;
    const ratio = Math.max(0.35, Math.min(2.2, (this.rowAxis.extent / this.columnAxis.extent) ** 0.5));
    const roomFor = (axis, each) => Math.min(size, axis.parts * each);
    this.width = Math.max(Math.round(size / Math.max(1, ratio)), roomFor(this.columnAxis, 20));
    this.height = drawn.length < 2 ? 30 : Math.max(Math.round(size * Math.min(1, ratio)), roomFor(this.rowAxis, 14));
    this.cursor = null;
    this.marked = -1;
    this.canvas = element("canvas", {
      tabindex: "0", role: "img", "aria-label": `${title}: ${layoutText(layout)}`,
      style: `width:${this.width}px;height:${this.height}px`,
      onpointermove: (event) => this.hover(event),
      onpointerleave: () => this.leave(),
      onblur: () => this.leave(),
      onkeydown: (event) => this.key(event),
    });
    this.draw();
  }

  partsAt(row, column) {
    const parts = [...this.fixed];
    if (this.rowAxis.dim >= 0) parts[this.rowAxis.dim] = row;
    if (this.columnAxis.dim >= 0) parts[this.columnAxis.dim] = column;
    return parts;
  }

  /** Chunks that one site grid coordinate holds are one area when chunks are too small to draw. */
  steps(axis, pixels) {
    if (axis.parts * 2.5 <= pixels) return Array.from({length: axis.parts + 1}, (_, part) => part);
    if (axis.grid * 1.5 <= pixels) return Array.from({length: axis.grid + 1}, (_, at) => Math.ceil(at * axis.parts / axis.grid));
    const count = Math.floor(pixels / 1.5);
    return Array.from({length: count + 1}, (_, at) => Math.floor(at * axis.parts / count));
  }

  draw() {
    const {width, height} = this;
    const context = sizedContext(this.canvas, width, height);
    const [rows, columns] = [this.steps(this.rowAxis, height), this.steps(this.columnAxis, width)];
    const place = (axis, part, pixels) => axis.extent > 0 ? chunkBegin(axis, part) / axis.extent * pixels : part / axis.parts * pixels;
    const card = styleOf("--card");
    for (let r = 0; r + 1 < rows.length; ++r) {
      const [top, bottom] = [place(this.rowAxis, rows[r], height), place(this.rowAxis, rows[r + 1], height)];
      for (let c = 0; c + 1 < columns.length; ++c) {
        const [left, right] = [place(this.columnAxis, columns[c], width), place(this.columnAxis, columns[c + 1], width)];
        this.drawChunk(context, sitesOf(this.layout, this.partsAt(rows[r], columns[c])), Math.min(left, right), Math.min(top, bottom),
                       Math.abs(right - left), Math.abs(bottom - top));  // chunks may go backwards
      }
    }
    context.strokeStyle = card;
    context.lineWidth = width / (columns.length - 1) > 6 ? 1.5 : 0.5;
    if (width / (columns.length - 1) > 3) {
      for (const part of columns.slice(1, -1)) this.line(context, place(this.columnAxis, part, width), 0, 0, height);
    }
    context.lineWidth = height / (rows.length - 1) > 6 ? 1.5 : 0.5;
    if (height / (rows.length - 1) > 3) {
      for (const part of rows.slice(1, -1)) this.line(context, 0, place(this.rowAxis, part, height), width, 0);
    }
    if (this.cursor) {
      const {row, column} = this.cursor;
      context.strokeStyle = styleOf("--text");
      context.lineWidth = 2;
      const ends = (axis, part, pixels) => [place(axis, part, pixels), place(axis, part + 1, pixels)].sort((a, b) => a - b);
      const [[left, right], [top, bottom]] = [ends(this.columnAxis, column, width), ends(this.rowAxis, row, height)];
      context.strokeRect(left + 1, top + 1, Math.max(right - left - 2, 1), Math.max(bottom - top - 2, 1));
    }
  }

  line(context, x, y, dx, dy) {
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + dx, y + dy);
    context.stroke();
  }

  /** Stripes in the colours of all sites that have a copy, as far as there is room; of a site that is marked, only its own. */
  drawChunk(context, all, left, top, width, height) {
    const isFaint = this.marked >= 0 && !all.includes(this.marked);
    const sites = this.marked >= 0 && !isFaint ? [this.marked] : all;
    const count = Math.max(1, Math.min(sites.length, Math.floor(width / 2)));
    const stripe = width / count;
    context.globalAlpha = isFaint ? 0.14 : 1;
    for (let at = 0; at < count; ++at) {
      context.fillStyle = siteColour(sites[Math.floor(at * sites.length / count)], this.sites);
      context.fillRect(left + at * stripe, top, stripe + 0.5, height);
    }
    context.globalAlpha = 1;
    if (isFaint) return;
    context.font = `600 ${height > 30 && width > 30 ? 12 : 10}px system-ui, 'DejaVu Sans', sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = "#10161d";
    if (height < 12) return;
    if (context.measureText(String(sites[sites.length - 1])).width < stripe - 2) {
      sites.forEach((site, at) => context.fillText(String(site), left + (at + 0.5) * stripe, top + height / 2 + 0.5));
    } else if (sites.length > 1 && context.measureText(`${sites.length}\u00d7`).width < width - 4) {
      context.fillText(`${sites.length}\u00d7`, left + width / 2, top + height / 2 + 0.5);
    }
  }

  partAt(axis, position) {
    const element = position * axis.extent;
    const isBackwards = chunkBegin(axis, 0) > chunkBegin(axis, axis.parts);
    let [low, high] = [0, axis.parts - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (isBackwards ? chunkBegin(axis, middle) > element : chunkBegin(axis, middle) <= element) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  hover(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const within = (at) => Math.max(0, Math.min(0.999999, at));
    this.point(this.partAt(this.rowAxis, within((event.clientY - bounds.top) / bounds.height)),
               this.partAt(this.columnAxis, within((event.clientX - bounds.left) / bounds.width)), event.clientX, event.clientY);
  }

  point(row, column, x, y) {
    this.cursor = {row, column};
    showTip(this.textAt(row, column), x, y);
    this.draw();
  }

  textAt(row, column) {
    const parts = this.partsAt(row, column);
    const sites = sitesOf(this.layout, parts);
    const shown = sites.length > 24 ? `${sites.slice(0, 24).join(", ")} and ${sites.length - 24} more` : sites.join(", ");
    const lines = this.layout.axes.map((axis, dim) => chunkText(axis, parts[dim]));
    return [...lines, `${sites.length === 1 ? "site" : "sites"} ${shown}`].join("\n");
  }

  leave() {
    this.cursor = null;
    showTip("");
    this.draw();
  }

  key(event) {
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!step) return;
    event.preventDefault();
    const {row, column} = this.cursor || {row: -step[0], column: -step[1]};
    const within = (at, axis) => Math.max(0, Math.min(axis.parts - 1, at));
    const bounds = this.canvas.getBoundingClientRect();
    this.point(within(row + step[0], this.rowAxis), within(column + step[1], this.columnAxis), bounds.right, bounds.top);
  }

  mark(site) {
    this.marked = site;
    this.draw();
  }
}

/** Every combination of parts of these axes, the last one fastest. */
function combinations(axes) {
  return axes.reduce((all, axis) => all.flatMap((begun) => Array.from({length: axis.parts}, (_, part) => [...begun, part])), [[]]);
}

/** A figure of all chunks of a layout; what it draws is added to `grids`. */
function chunkFigure(caption, layout, sites, grids) {
  const drawn = drawnDimensions(layout.axes);
  const others = layout.axes.filter((axis) => axis.parts > 1 && !drawn.includes(axis.dim));
  const count = others.reduce((product, axis) => product * axis.parts, 1);
  const whole = layout.axes.map(() => 0);
  const fixedAt = (parts) => {
    const fixed = [...whole];
    others.forEach((axis, at) => { fixed[axis.dim] = parts[at]; });
    return fixed;
  };
  const named = (axis) => axis.label || `dim ${axis.dim}`;
  const names = drawn.map((dim) => named(layout.axes[dim]));
  const directions = names.length === 2 ? `${names[0]} \u2193  ${names[1]} \u2192` : names.length === 1 ? `${names[0]} \u2192` : "a number";
  const add = (fixed, size) => {
    const grid = new ChunkGrid(layout, fixed, size, sites, caption);
    grids.push(grid);
    return grid.canvas;
  };
  const figure = element("figure", {class: count === 1 || count > mostMultiples ? "small" : ""}, element("figcaption", {}, element("b", {}, caption), " ", element("span", {class: "axes"}, directions),
                                               element("br"), layoutText(layout)));
  if (count === 1) {
    figure.append(add(whole, 196));
  } else if (count <= mostMultiples) {
    const size = count <= 2 ? 130 : count <= 4 ? 96 : 88;
    figure.append(element("div", {class: "multiples"}, ...combinations(others).map((parts) => element(
      "figure", {}, element("figcaption", {}, others.map((axis, at) => `${named(axis)} ${parts[at]}`).join(", ")),
      add(fixedAt(parts), size)))));
  } else {
    figure.append(sliders(others, fixedAt, (fixed) => new ChunkGrid(layout, fixed, 196, sites, caption), grids, named));
  }
  return figure;
}

/** The chunks of one part of each other dimension, and a slider for each. */
function sliders(others, fixedAt, make, grids, named) {
  const chosen = others.map(() => 0);
  const holder = element("div");
  const place = grids.length;
  const show = () => {
    const grid = make(fixedAt(chosen));
    grid.mark(grids[place] ? grids[place].marked : -1);
    grids[place] = grid;
    holder.replaceChildren(grid.canvas);
  };
  show();
  const rows = others.map((axis, at) => {
    const text = element("span", {}, chunkText(axis, 0));
    const slider = element("input", {type: "range", min: "0", max: String(axis.parts - 1), value: "0", "aria-label": `chunk of ${named(axis)}`,
      oninput: () => {
        chosen[at] = Number(slider.value);
        text.textContent = chunkText(axis, chosen[at]);
        show();
      }});
    return element("label", {class: "choose"}, slider, text);
  });
  return element("div", {}, ...rows, holder);
}
