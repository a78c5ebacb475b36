// A layered drawing: producers above consumers, long programs folded into columns. Every step is linear in vertices and
// edges, or sorts them; how often steps repeat is fixed.

const box = {width: 168, height: 46, gapX: 26, gapY: 42, columnGap: 110};
const sweeps = 8;

/** The layer of each vertex: below its producers, and late where that makes its edges shorter. */
function layersOf(vertices) {
  const layer = new Array(vertices.length).fill(0);
  for (const vertex of vertices) {
    for (const input of vertex.inputs) layer[vertex.id] = Math.max(layer[vertex.id], layer[input] + 1);
  }
  for (let v = vertices.length; v-- > 0;) {
    const {inputs, consumers} = vertices[v];
    const producers = inputs.filter((input) => !vertices[input].isInput).length;
    if (consumers.length <= producers) continue;
    layer[v] = consumers.reduce((least, consumer) => Math.min(least, layer[consumer] - 1), Infinity);
  }
  return rowsNoWiderThan(Math.max(10, Math.ceil(1.2 * Math.sqrt(vertices.length))), layer);
}

/** The same layers, numbered from 0 without holes, those with too many vertices made several. */
function rowsNoWiderThan(most, layer) {
  const count = layer.reduce((highest, at) => Math.max(highest, at + 1), 0);
  const members = Array.from({length: count}, () => []);
  layer.forEach((at, v) => members[at].push(v));
  const result = new Array(layer.length).fill(0);
  let next = 0;
  for (const all of members) {
    if (all.length === 0) continue;
    const rows = Math.ceil(all.length / most);
    const each = Math.ceil(all.length / rows);
    all.forEach((v, at) => { result[v] = next + Math.floor(at / each); });
    next += rows;
  }
  return result;
}

/** After which layers the drawing goes on in a new column: where few edges cross, and so that it fills the view. */
function columnBreaks(edges, layer, layers, typical, aspect) {
  const pitch = box.height + box.gapY;
  const scaleOf = (columns) => Math.min(
    1, aspect.width / (columns * (typical + box.columnGap)), aspect.height / (Math.ceil(layers / columns) * pitch));
  let best = 1;
  for (let columns = 2; columns <= layers / 6; ++columns) {
    if (scaleOf(columns) > 1.15 * scaleOf(best)) best = columns;
  }
  const crossing = new Array(layers + 1).fill(0);  // edges from a layer <= l to one > l, by differences
  for (const {from, to} of edges) {
    if (layer[to] - layer[from] > 60) continue;
    crossing[layer[from]] += 1;
    crossing[layer[to]] -= 1;
  }
  for (let l = 1; l < layers; ++l) crossing[l] += crossing[l - 1];
  const breaks = [];
  let begin = 0;
  while (breaks.length + 1 < best) {
    const each = (layers - begin) / (best - breaks.length);
    let chosen = -1;
    let least = Infinity;
    for (let l = Math.max(begin + 2, Math.ceil(begin + 0.6 * each)); l <= begin + 1.3 * each && l < layers; ++l) {
      const cost = crossing[l - 1] + 3 * Math.abs(l - begin - each) / each;
      if (cost < least) [chosen, least] = [l, cost];
    }
    if (chosen < 0) break;
    breaks.push(chosen);
    begin = chosen;
  }
  return breaks;
}

/** Positions on the row as near to those wanted as the widths allow, in the least squares (pool adjacent violators). */
function spaced(row, wanted, widthOf, weightOf) {
  const pools = [];
  let offset = 0;
  row.forEach((node, at) => {
    if (at > 0) offset += (widthOf(row[at - 1]) + widthOf(node)) / 2;
    let pool = {sum: weightOf(node) * (wanted(node) - offset), weight: weightOf(node), members: [[node, offset]]};
    while (pools.length > 0) {
      const last = pools[pools.length - 1];
      if (last.sum / last.weight <= pool.sum / pool.weight) break;
      pools.pop();
      for (const member of pool.members) last.members.push(member);
      pool = {sum: last.sum + pool.sum, weight: last.weight + pool.weight, members: last.members};
    }
    pools.push(pool);
  });
  return pools.flatMap(({sum, weight, members}) => members.map(([node, by]) => [node, sum / weight + by]));
}

/** Rows of nodes: vertices, and the places where edges pass a layer. Far edges pass without. */
function rowsWithPassages(vertices, edges, layer, columnOf) {
  const layers = layer.reduce((highest, at) => Math.max(highest, at + 1), 0);
  const nodes = vertices.map((vertex) => ({vertex: vertex.id, layer: layer[vertex.id], up: [], down: [], x: 0, at: 0}));
  const rows = Array.from({length: layers}, () => []);
  for (const node of nodes) rows[node.layer].push(node);
  const spanOf = ({from, to}) => layer[to] - layer[from];
  let left = 5 * vertices.length + 200;
  for (const edge of [...edges].sort((a, b) => spanOf(a) - spanOf(b))) {
    edge.isFar = columnOf[layer[edge.from]] !== columnOf[layer[edge.to]] || spanOf(edge) > 45 || spanOf(edge) - 1 > left;
    edge.passages = [];
    if (edge.isFar) continue;
    left -= spanOf(edge) - 1;
    let last = nodes[edge.from];
    for (let l = layer[edge.from] + 1; l <= layer[edge.to]; ++l) {
      const isEnd = l === layer[edge.to];
      const node = isEnd ? nodes[edge.to] : {vertex: -1, layer: l, up: [], down: [], x: 0, at: 0};
      if (!isEnd) {
        rows[l].push(node);
        edge.passages.push(node);
      }
      last.down.push(node);
      node.up.push(last);
      last = node;
    }
  }
  return {nodes, rows};
}

const isPassage = (node) => node.vertex < 0;
const meanOf = (nodes, of) => nodes.reduce((sum, node) => sum + of(node), 0) / nodes.length;

/** Orders each row by where its neighbours are, down and up, as often as `sweeps` says. */
function orderRows(rows) {
  const number = (row) => row.forEach((node, at) => { node.at = (at + 0.5) / row.length; });
  rows.forEach(number);
  for (let sweep = 0; sweep < sweeps; ++sweep) {
    const isDown = sweep % 2 === 0;
    for (let i = 0; i < rows.length; ++i) {
      const row = rows[isDown ? i : rows.length - 1 - i];
      const key = new Map(row.map((node) => {
        const near = isDown ? node.up : node.down;
        return [node, near.length > 0 ? meanOf(near, (other) => other.at) : node.at];
      }));
      row.sort((a, b) => key.get(a) - key.get(b));
      number(row);
    }
  }
}

/** Puts nodes near the mean of their neighbours; edges that pass many layers become straight. */
function placeRows(rows) {
  const widthOf = (node) => isPassage(node) ? 20 : box.width + box.gapX;
  for (const row of rows) {
    const width = row.reduce((sum, node) => sum + widthOf(node), 0);
    let x = -width / 2;
    for (const node of row) {
      node.x = x + widthOf(node) / 2;
      x += widthOf(node);
    }
  }
  for (let sweep = 0; sweep < sweeps + 1; ++sweep) {
    const isDown = sweep % 2 === 0;
    const isLast = sweep === sweeps;
    for (let i = 0; i < rows.length; ++i) {
      const row = rows[isDown ? i : rows.length - 1 - i];
      const wanted = (node) => {
        const near = isLast ? [...node.up, ...node.down] : isDown ? node.up : node.down;
        return near.length > 0 ? meanOf(near, (other) => other.x) : node.x;
      };
      const weightOf = (node) => {
        const near = isDown ? node.up : node.down;
        return near.length === 0 ? 0.2 : isPassage(node) || near.some(isPassage) ? 4 : 1;
      };
      for (const [node, x] of spaced(row, wanted, widthOf, weightOf)) node.x = x;
    }
  }
}

/** Edges enter a vertex in the order that they come in, from left to right. */
function orderEntries(edges, nodes) {
  const entering = nodes.map(() => []);
  for (const edge of edges) entering[edge.to].push(edge);
  const comesFrom = (edge) => edge.isFar ? nodes[edge.from].column - 1e6
    : edge.passages.length > 0 ? edge.passages[edge.passages.length - 1].x : nodes[edge.from].x;
  for (const all of entering) {
    all.sort((a, b) => comesFrom(a) - comesFrom(b) || a.operand - b.operand);
    all.forEach((edge, slot) => { edge.slot = slot; });
  }
}

/** Where every vertex and edge of a graph is drawn, in a world that `bounds` encloses; `aspect` is the size of the view. */
function layoutGraph(vertices, aspect) {
  const layer = layersOf(vertices);
  const edges = [];
  for (const vertex of vertices) {
    vertex.inputs.forEach((from, operand) => edges.push({from, to: vertex.id, operand}));
  }
  const layers = layer.reduce((highest, at) => Math.max(highest, at + 1), 0);
  const widths = new Array(layers).fill(0);
  for (const at of layer) widths[at] += 1;
  widths.sort((a, b) => a - b);
  const guess = widths[Math.floor(0.9 * (layers - 1))] * (box.width + box.gapX);
  const drawn = layoutColumns(vertices, edges, layer, columnBreaks(edges, layer, layers, guess, aspect));
  if (drawn.columns.length === 1) return drawn;
  const width = meanOf(drawn.columns, ({left, right}) => right - left);  // now it is known how wide columns are
  return layoutColumns(vertices, edges, layer, columnBreaks(edges, layer, layers, width, aspect));
}

function layoutColumns(vertices, edges, layer, breaks) {
  const layers = layer.reduce((highest, at) => Math.max(highest, at + 1), 0);
  const columnOf = [];
  for (let l = 0, column = 0; l < layers; ++l) {
    if (l === breaks[column]) ++column;
    columnOf.push(column);
  }
  const {nodes, rows} = rowsWithPassages(vertices, edges, layer, columnOf);
  orderRows(rows);
  placeRows(rows);

  const pitch = box.height + box.gapY;
  const columns = [];
  let x = 0;
  for (let column = 0; column <= breaks.length; ++column) {
    const begin = column === 0 ? 0 : breaks[column - 1];
    const own = rows.slice(begin, column < breaks.length ? breaks[column] : layers);
    const all = own.flat();
    const halfOf = (node) => isPassage(node) ? 4 : box.width / 2;
    const left = Math.min(...own.map((row) => row.reduce((least, node) => Math.min(least, node.x - halfOf(node)), Infinity)));
    const right = Math.max(...own.map((row) => row.reduce((most, node) => Math.max(most, node.x + halfOf(node)), -Infinity)));
    for (const node of all) {
      node.x += x - left;
      node.y = (node.layer - begin) * pitch + box.height / 2;
      node.column = column;
    }
    columns.push({left: x, right: x + right - left, height: own.length * pitch - box.gapY});
    x += right - left + box.columnGap;
  }
  orderEntries(edges, nodes);
  const height = columns.reduce((most, column) => Math.max(most, column.height), box.height);
  return {nodes, edges, columns, rows, bounds: {width: Math.max(x - box.columnGap, box.width), height}};
}
