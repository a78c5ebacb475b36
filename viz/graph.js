// The graph on a canvas. From afar only boxes in the colour of their cost, nearer names, nearer still how each is cut.

class GraphView {
  constructor(canvas, model, callbacks) {
    this.canvas = canvas;
    this.model = model;
    this.callbacks = callbacks;
    this.camera = {x: 0, y: 0, k: 1};
    this.hovered = -1;
    this.fitted = new Map();  // texts cut to a width
    this.state = {plan: 0, kind: "seconds", selected: -1, isFolded: model.alike.size > 0};
    this.isFit = true;
    this.measure();
    this.place(this.state.isFolded);
    this.listen();
    new ResizeObserver(() => {
      this.measure();
      if (this.isFit) this.fit();
      this.drawNow();  // before the browser paints: otherwise the old picture would be stretched
    }).observe(canvas);
    this.fit();
  }

  /** Vertices are counted as they are drawn from here on; `ids` has their numbers in the model. */
  place(isFolded) {
    const start = performance.now();
    this.view = viewOf(this.model, isFolded);
    this.layout = layoutGraph(this.view.vertices, this.size);
    this.hovered = -1;
    this.layoutMilliseconds = performance.now() - start;
  }

  measure() {
    const {width, height} = this.canvas.getBoundingClientRect();
    this.size = {width: Math.max(width, 50), height: Math.max(height, 50)};
  }

  // --- the camera

  fit() {
    const {width, height} = this.layout.bounds;
    const k = Math.min((this.size.width - 70) / width, (this.size.height - 90) / height, 1.35);
    this.move({x: width / 2, y: height / 2 + 12 / k, k: Math.max(k, 1e-4)});
    this.isFit = true;
  }

  move(camera) {
    this.camera = camera;
    this.isFit = false;
    this.draw();
  }

  glide(target) {
    const from = {...this.camera};
    this.isFit = false;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.move(target);
    const start = performance.now();
    const mine = this.gliding = {};
    const step = (now) => {
      if (this.gliding !== mine) return;
      const t = Math.min(1, (now - start) / 260);
      const s = t * t * (3 - 2 * t);
      const between = (a, b) => a + s * (b - a);
      this.move({x: between(from.x, target.x), y: between(from.y, target.y), k: from.k * (target.k / from.k) ** s});
      if (t < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  zoom(factor, at = {x: this.size.width / 2, y: this.size.height / 2}) {
    this.gliding = null;
    const k = Math.max(0.004, Math.min(4, this.camera.k * factor));
    const world = this.toWorld(at);
    this.move({x: world.x - (at.x - this.size.width / 2) / k, y: world.y - (at.y - this.size.height / 2) / k, k});
  }

  /** Brings a vertex of the model into view, near enough to read it. */
  focus(id, isWanted) {
    const node = this.layout.nodes[this.view.at[id]];
    const at = this.toScreen(node);
    const isInside = at.x > 60 && at.x < this.size.width - 60 && at.y > 40 && at.y < this.size.height - 40;
    if (!isWanted && isInside && this.camera.k > 0.3) return;
    this.glide(this.nearTo(id));
  }

  nearTo(id) {
    const {x, y} = this.layout.nodes[this.view.at[id]];
    return {x, y, k: Math.max(this.camera.k, 0.8)};
  }

  toScreen({x, y}) {
    return {x: (x - this.camera.x) * this.camera.k + this.size.width / 2,
      y: (y - this.camera.y) * this.camera.k + this.size.height / 2};
  }
  toWorld({x, y}) {
    return {x: (x - this.size.width / 2) / this.camera.k + this.camera.x,
      y: (y - this.size.height / 2) / this.camera.k + this.camera.y};
  }

  // --- pointer and keys

  listen() {
    const {canvas} = this;
    let pressed = null;
    const place = (event) => {
      const bounds = canvas.getBoundingClientRect();
      return {x: event.clientX - bounds.left, y: event.clientY - bounds.top};
    };
    canvas.addEventListener("pointerdown", (event) => {
      this.gliding = null;
      pressed = {at: place(event), camera: {...this.camera}, moved: false};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const at = place(event);
      if (pressed) {
        const [dx, dy] = [at.x - pressed.at.x, at.y - pressed.at.y];
        if (pressed.moved || Math.hypot(dx, dy) > 4) {
          pressed.moved = true;
          const {x, y, k} = pressed.camera;
          this.move({x: x - dx / k, y: y - dy / k, k});
          this.hover(-1, event);
        }
        return;
      }
      this.hover(this.at(at), event);
    });
    canvas.addEventListener("pointerup", (event) => {
      const hit = pressed && !pressed.moved ? this.at(place(event)) : -1;
      pressed = null;
      if (hit >= 0) this.callbacks.select(this.view.ids[hit]);
    });
    canvas.addEventListener("pointercancel", () => { pressed = null; });
    canvas.addEventListener("pointerleave", (event) => this.hover(-1, event));
    canvas.addEventListener("dblclick", (event) => this.zoom(1.8, place(event)));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 30 : 1;
      this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016)), place(event));
    }, {passive: false});
    canvas.addEventListener("keydown", (event) => {
      const step = this.keyStep(event.key);
      if (!step) return;
      event.preventDefault();
      step();
    });
  }

  keyStep(key) {
    const selected = this.view.at[this.state.selected];
    const {vertices} = this.view;
    const go = (place) => () => {
      if (place === undefined) return;
      const id = this.view.ids[place];
      this.callbacks.select(id);
      this.focus(id, false);
    };
    const beside = (step) => {
      const row = this.layout.rows[this.layout.nodes[selected].layer].filter((node) => !isPassage(node));
      return row[row.findIndex((node) => node.vertex === selected) + step]?.vertex;
    };
    switch (key) {
      case "+": case "=": return () => this.zoom(1.3);
      case "-": return () => this.zoom(1 / 1.3);
      case "0": return () => this.fit();
      case "f": return () => this.focus(this.state.selected, true);
      case "ArrowUp": return go(vertices[selected].inputs.find((input) => !vertices[input].isInput) ?? vertices[selected].inputs[0]);
      case "ArrowDown": return go(vertices[selected].consumers[0]);
      case "ArrowLeft": return go(beside(-1));
      case "ArrowRight": return go(beside(1));
      default: return null;
    }
  }

  at(point) {
    const world = this.toWorld(point);
    const slack = 3 / this.camera.k;
    let nearest = -1;
    let least = Infinity;
    for (const node of this.layout.nodes) {
      const [dx, dy] = [Math.abs(node.x - world.x), Math.abs(node.y - world.y)];
      if (dx > box.width / 2 + slack || dy > box.height / 2 + slack || dx + dy > least) continue;
      [nearest, least] = [node.vertex, dx + dy];
    }
    return nearest;
  }

  hover(id, event) {
    showTip(id < 0 ? "" : this.tipOf(this.view.ids[id]), event.clientX, event.clientY);
    this.canvas.style.cursor = id < 0 ? "" : "pointer";
    if (id === this.hovered) return;
    this.hovered = id;
    this.draw();
  }

  tipOf(id) {
    const vertex = this.model.vertices[id];
    const planned = this.planned(id);
    const cut = vertex.isInput ? cutText(vertex, planned) : `cut: ${cutText(vertex, planned)}`;
    if (vertex.isInput) return `${vertex.formula}\n${cut}`;
    const figures = figuresOf(this.model, this.state.plan, id, this.state.isFolded);
    const together = figures.times > 1 ? `, ${figures.times} of its like together` : "";
    const part = partText(this.model, this.state.plan, "seconds", figures);
    return `${vertex.formula}\n${cut}\n${secondsText(figures.seconds)}${part && `, ${part}`}; ${bytesText(figures.bytes)} received${together}`;
  }

  // --- drawing

  planned(id) {
    return this.model.plans[this.state.plan].vertices[id];
  }

  show(state) {
    if (state.isFolded !== this.view.isFolded) {
      this.place(state.isFolded);
      this.fit();
    }
    this.state = state;
    this.figures = this.view.ids.map((id) => figuresOf(this.model, state.plan, id, state.isFolded));
    this.selected = this.view.at[state.selected];
    this.highest = this.figures.reduce((most, figures) => Math.max(most, figures[state.kind]), 0);
    this.mostMoved = this.figures.reduce((most, {operandBytes}) => Math.max(most, ...operandBytes), 1);
    this.draw();
  }

  draw() {
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      this.drawNow();
    });
  }

  drawNow() {
    const {width, height} = this.size;
    const context = sizedContext(this.canvas, width, height);
    const {x, y, k} = this.camera;
    this.colours = {edge: styleOf("--edge"), line: styleOf("--node-line"), accent: styleOf("--accent"), text: styleOf("--text"),
      quiet: styleOf("--quiet"), card: styleOf("--card"), raised: styleOf("--raised")};
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio * k, 0, 0, ratio * k, ratio * (width / 2 - x * k), ratio * (height / 2 - y * k));
    const corner = this.toWorld({x: 0, y: 0});
    const other = this.toWorld({x: width, y: height});
    this.window = {left: corner.x - box.width, right: other.x + box.width, top: corner.y - 2 * box.height, bottom: other.y + 2 * box.height};
    this.drawLayers(context);
    this.drawEdges(context);
    let drawn = 0;
    for (const node of this.layout.nodes) {
      if (!this.isVisible(node)) continue;
      this.drawNode(context, node);
      ++drawn;
    }
    for (const place of [this.hovered, this.selected]) {
      if (place >= 0) this.drawRing(context, this.layout.nodes[place], place === this.selected);
    }
    this.callbacks.drawn(drawn);
  }

  isVisible({x, y}) {
    return x > this.window.left && x < this.window.right && y > this.window.top && y < this.window.bottom;
  }

  /** Behind the vertices of layers that are drawn once, a field with how often they come; one in each column. */
  drawLayers(context) {
    if (!this.view.isFolded) return;
    const {camera: {k}, colours} = this;
    for (const {times, ids} of this.model.layers) {
      const nodes = ids.map((id) => this.layout.nodes[this.view.at[id]]);
      for (const column of new Set(nodes.map((node) => node.column))) {
        const own = nodes.filter((node) => node.column === column);
        const [left, right] = [Math.min(...own.map(({x}) => x)), Math.max(...own.map(({x}) => x))];
        const [top, bottom] = [Math.min(...own.map(({y}) => y)), Math.max(...own.map(({y}) => y))];
        const [wide, high] = [box.width / 2 + 14, box.height / 2 + 14];
        const room = Math.max(18, 13 / k);  // for the text below
        context.beginPath();
        context.roundRect(left - wide, top - high, right - left + 2 * wide, bottom - top + 2 * high + room, 16);
        context.fillStyle = colours.raised;
        context.fill();
        context.lineWidth = Math.max(1, 0.6 / k);
        context.strokeStyle = colours.line;
        context.stroke();
        context.font = `600 ${Math.max(15, 11 / k)}px system-ui, 'DejaVu Sans', sans-serif`;
        context.textAlign = "right";
        context.textBaseline = "bottom";
        context.fillStyle = colours.quiet;
        context.fillText(`\u00d7 ${times}`, right + wide - 8, bottom + high + room - 4);
      }
    }
  }

  /** Where an edge enters its consumer. */
  entry(edge) {
    const to = this.layout.nodes[edge.to];
    const last = this.view.vertices[edge.to].inputs.length - 1;
    const apart = Math.min(52, (box.width - 24) / Math.max(last, 1));
    return {x: to.x + (edge.slot - last / 2) * apart, y: to.y - box.height / 2};
  }

  drawEdges(context) {
    const {camera: {k}, colours} = this;
    const {selected} = this;
    const styles = new Map();  // from the look of edges to their path
    for (const edge of this.layout.edges) {
      const isChosen = [selected, this.hovered].some((id) => id >= 0 && (edge.from === id || edge.to === id));
      const bytes = this.figures[edge.to].operandBytes[edge.operand];
      if (!isChosen && !this.mayShow(edge)) continue;
      const weight = bytes > 0 ? 1 + Math.round(3 * Math.sqrt(bytes / this.mostMoved)) : 0;
      const key = `${isChosen ? 1 : 0} ${weight}`;
      if (!styles.has(key)) styles.set(key, {path: new Path2D(), isChosen, weight});
      this.traceEdge(styles.get(key).path, edge, isChosen);
    }
    for (const {path, isChosen, weight} of [...styles.values()].sort((a, b) => a.isChosen - b.isChosen || a.weight - b.weight)) {
      context.strokeStyle = weight > 0 ? colours.accent : isChosen ? colours.text : colours.edge;
      context.globalAlpha = isChosen ? 0.95 : weight > 0 ? 0.8 : 1;
      const least = isChosen ? 1.6 : weight > 0 ? 1 : 0.7;
      context.lineWidth = Math.max((isChosen ? 2 : 1.2) + 0.8 * weight, least / k);
      context.stroke(path);
    }
    context.globalAlpha = 1;
    if (k > 0.6) this.drawEdgeTexts(context);
  }

  mayShow(edge) {
    const [from, to] = [this.layout.nodes[edge.from], this.layout.nodes[edge.to]];
    const {left, right, top, bottom} = this.window;
    if (edge.isFar) return this.isVisible(to) || (this.isFolded(edge) && this.isVisible(from));
    return Math.max(from.y, to.y) > top && Math.min(from.y, to.y) < bottom && Math.max(from.x, to.x) > left - 400 &&
      Math.min(from.x, to.x) < right + 400;
  }

  /** Whether an edge goes from the end of a column to the beginning of the next. */
  isFolded(edge) {
    const [from, to] = [this.layout.nodes[edge.from], this.layout.nodes[edge.to]];
    if (to.column !== from.column + 1) return false;
    return this.layout.columns[from.column].height - from.y < 4 * (box.height + box.gapY) && to.y < 4 * (box.height + box.gapY);
  }

  traceEdge(path, edge, isChosen) {
    const from = this.layout.nodes[edge.from];
    const end = this.entry(edge);
    if (!edge.isFar) {
      let last = {x: from.x, y: from.y + box.height / 2};
      path.moveTo(last.x, last.y);
      if (edge.passages.length > 0) {
        const [first] = edge.passages;
        const middle = (last.y + first.y - box.height / 2) / 2;
        path.bezierCurveTo(last.x, middle, first.x, middle, first.x, first.y - box.height / 2);
      }
      for (let at = 0; at + 1 < edge.passages.length; ++at) {
        const [passed, next] = [edge.passages[at], edge.passages[at + 1]];
        const middle = {x: (passed.x + next.x) / 2, y: (passed.y + next.y) / 2};
        path.quadraticCurveTo(passed.x, passed.y, middle.x, middle.y);
        last = middle;
      }
      if (edge.passages.length > 0) {
        const passed = edge.passages[edge.passages.length - 1];
        last = {x: passed.x, y: passed.y + box.height / 2};
        path.quadraticCurveTo(passed.x, passed.y, last.x, last.y);
      }
      const middle = (last.y + end.y) / 2;
      path.bezierCurveTo(last.x, middle, end.x, middle, end.x, end.y);
    } else if (this.isFolded(edge)) {
      const gutter = this.layout.columns[from.column + 1].left - box.columnGap / 2;
      const [start, top] = [from.x + box.width / 2, end.y - 22];
      path.moveTo(start, from.y);
      path.lineTo(gutter - 14, from.y);
      path.arcTo(gutter, from.y, gutter, from.y - 14, 14);
      path.arcTo(gutter, top, gutter + 14, top, 14);
      path.arcTo(end.x, top, end.x, top + 14, 14);
      path.lineTo(end.x, end.y);
    } else if (isChosen) {
      const middle = (from.y + end.y) / 2;
      path.moveTo(from.x, from.y + box.height / 2);
      path.bezierCurveTo(from.x, Math.max(middle, from.y + 90), end.x, Math.min(middle, end.y - 90), end.x, end.y);
    } else {
      path.moveTo(end.x, end.y - 14);
      path.lineTo(end.x, end.y);
    }
  }

  drawEdgeTexts(context) {
    context.font = "10px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    for (const edge of this.layout.edges) {
      const end = this.entry(edge);
      if (!this.isVisible(end)) continue;
      const bytes = this.figures[edge.to].operandBytes[edge.operand];
      const isStub = edge.isFar && !this.isFolded(edge);
      const name = isStub ? this.fitText(context, 10, this.model.vertices[this.view.ids[edge.from]].name, 50) : "";
      const text = [name, bytes > 0 ? bytesText(bytes) : ""].filter((part) => part).join(" ");
      if (!text) continue;
      const width = context.measureText(text).width;
      const y = isStub ? end.y - 20 : end.y - 11;
      context.fillStyle = this.colours.card;
      context.globalAlpha = 0.85;
      context.fillRect(end.x - width / 2 - 2, y - 6, width + 4, 12);
      context.globalAlpha = 1;
      context.fillStyle = bytes > 0 ? this.colours.accent : this.colours.quiet;
      context.textAlign = "center";
      context.fillText(text, end.x, y);
    }
  }

  drawNode(context, node) {
    const {camera: {k}, colours} = this;
    const id = this.view.ids[node.vertex];
    const vertex = this.model.vertices[id];
    const {isOutput} = this.view.vertices[node.vertex];
    const figures = this.figures[node.vertex];
    const name = nameOf(this.model, id, figures);
    const height = vertex.isInput ? box.height - 10 : box.height;
    const grown = k < 0.32 ? Math.min(1, (0.32 - k) / 0.12) : 0;  // from afar boxes fill their gaps
    const [wide, high] = [box.width + grown * (box.gapX - 6), height + grown * box.gapY * 0.55];
    const [left, top] = [node.x - wide / 2, node.y - high / 2];
    const fill = vertex.isInput ? null : costColour(this.state.kind, figures[this.state.kind] / (this.highest || 1));
    context.fillStyle = fill ? cssOf(fill) : colours.card;
    if (k < 0.12 && fill && !isOutput) return context.fillRect(left, top, wide, high);
    context.beginPath();
    context.roundRect(left, top, wide, high, vertex.isInput ? high / 2 : 8);
    context.fill();
    context.lineWidth = Math.max(isOutput ? 3 : 1, (isOutput ? 1.4 : 0.5) / k);
    context.strokeStyle = isOutput ? colours.text : vertex.isInput && k >= 0.12 ? colours.quiet : colours.line;
    if (vertex.isInput && k > 0.3) context.setLineDash([5, 3]);
    context.stroke();
    context.setLineDash([]);
    if (k < 0.32) return;
    const isOnBright = fill ? isBright(fill) : !isDark();
    const [text, quiet] = isOnBright ? ["#17202b", "rgb(23 32 43 / 68%)"] : ["#f4f6f9", "rgb(244 246 249 / 72%)"];
    context.textBaseline = "middle";
    context.fillStyle = text;
    if (k < 0.58) {
      context.textAlign = "center";
      context.font = "600 23px system-ui, 'DejaVu Sans', sans-serif";
      context.fillText(this.fitText(context, 23, name, box.width - 14), node.x, node.y + 1);
      return;
    }
    const inset = vertex.isInput ? 16 : 10;
    const value = vertex.isInput ? vertex.shape.join("\u00d7") || "scalar" : kindText(this.state.kind, figures);
    context.textAlign = "right";
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    const shown = this.fitText(context, 11, value, 92);
    if (vertex.isInput) context.fillStyle = quiet;
    context.fillText(shown, left + box.width - inset, node.y - (vertex.isInput ? 7 : 9));
    const room = box.width - 2 * inset - context.measureText(shown).width - 8;
    context.textAlign = "left";
    context.fillStyle = quiet;
    context.fillText(this.fitText(context, 11, cutText(vertex, this.planned(id)), box.width - 2 * inset), left + inset,
                     node.y + (vertex.isInput ? 8 : 10));
    context.fillStyle = text;
    context.font = "600 13px system-ui, 'DejaVu Sans', sans-serif";
    context.fillText(this.fitText(context, 13, name, Math.round(room)), left + inset, node.y - (vertex.isInput ? 7 : 9));
  }

  drawRing(context, node, isSelected) {
    const {camera: {k}, colours} = this;
    const grown = Math.max(4, 3 / k);
    const height = this.view.vertices[node.vertex].isInput ? box.height - 10 : box.height;
    context.beginPath();
    context.roundRect(node.x - box.width / 2 - grown, node.y - height / 2 - grown, box.width + 2 * grown, height + 2 * grown, 8 + grown);
    context.lineWidth = Math.max(3, (isSelected ? 2.5 : 1.5) / k);
    context.strokeStyle = isSelected ? colours.accent : colours.quiet;
    context.stroke();
  }

  fitText(context, size, text, width) {
    const key = `${size} ${width} ${text}`;
    if (!this.fitted.has(key)) {
      let shown = text;
      if (context.measureText(text).width > width) {
        let [fits, most] = [0, text.length];
        while (fits < most) {
          const middle = Math.ceil((fits + most) / 2);
          if (context.measureText(`${text.slice(0, middle)}\u2026`).width <= width) fits = middle;
          else most = middle - 1;
        }
        shown = `${text.slice(0, fits)}\u2026`;
      }
      this.fitted.set(key, shown);
    }
    return this.fitted.get(key);
  }
}
