// The data as the rest of the page reads it, and where chunks lie: the rules of src/plan/layout.h.

const mapOf = (object) => new Map(Object.entries(object || {}));

/** Vertices in program order, each with the vertices that it reads and that read it. */
function readModel(data) {
  const computed = new Map(data.vertices.map((vertex) => [vertex.name, vertex]));
  const inputs = mapOf(data.inputs);
  const outputs = mapOf(data.outputs);
  const vertices = data.plans[0].vertices.map((planned, id) => {
    const from = computed.get(planned.name) || inputs.get(planned.name);
    const isInput = !computed.has(planned.name);
    const dimensions = from.shape.map((extent, at) => [String(at)]);
    return {
      id, name: planned.name, isInput, isOutput: outputs.has(planned.name),
      formula: isInput ? `input ${planned.name}[${from.shape.join(", ")}] : ${from.dtype}` : from.formula,
      dtype: from.dtype, shape: from.shape, flops: from.flops || 0, kernel: from.kernel || null, otherKernels: from.other_kernels || [],
      labels: isInput ? dimensions.map(([label]) => label) : from.labels,
      extents: isInput ? new Map(from.shape.map((extent, at) => [String(at), extent])) : mapOf(from.extents),
      resultLabels: isInput ? dimensions : from.result_labels,
      operandLabels: isInput ? [] : from.operand_labels,
      inputNames: isInput ? [] : from.inputs, inputs: [], consumers: [],
      measured: isInput || !data.measured ? null
        : {seconds: from.seconds, bytes: from.bytes_moved, memory: from.peak_memory.measured},
    };
  });
  const idOf = new Map(vertices.map((vertex) => [vertex.name, vertex.id]));
  const idsOf = (names) => names.map((name) => idOf.get(name));
  for (const vertex of vertices) {
    vertex.inputs = idsOf(vertex.inputNames);
    for (const input of new Set(vertex.inputs)) vertices[input].consumers.push(vertex.id);
  }
  const plans = data.plans.map((plan) => ({
    ...plan,
    vertices: plan.vertices.map((planned) => ({
      parts: mapOf(planned.parts), sites: mapOf(planned.sites), strides: mapOf(planned.strides), bytes: planned.bytes,
      scatter: planned.scatter || null, allReduced: planned.all_reduced === true, copies: planned.copies || [], operandBytes: planned.operand_bytes, reducedBytes: planned.reduced_bytes, windows: planned.windows || [],
      seconds: planned.seconds, memory: planned.peak_memory ? planned.peak_memory.predicted : 0, runnerUp: planned.runner_up || null,
      notCut: mapOf(planned.not_cut),
      links: new Map((planned.links || []).map(({link, groups}) => [link, mapOf(groups)])),
    })),
  }));
  plans.forEach((plan, at) => {
    for (const {vertices: names, cuts} of data.plans[at].other_cuts)
      for (const id of idsOf(names)) plan.vertices[id].otherCuts = cuts;
  });
  const alike = new Map(data.alike.map(({vertices: names, plans: together, measured}) =>
    [idOf.get(names[0]), {members: idsOf(names), plans: together, measured}]));
  const measured = data.measured || null;
  const isShared = measured !== null && measured.bytes_moved_per_site.length === 0;
  const layers = data.layers.map(({times, vertices: names, last}) => ({times, ids: idsOf(names), last}));
  // Where sites have shared memory, no bytes went from one to another, and the limit was that of all together.
  return {program: data.program, hasTasks: data.tasks !== null, machine: data.machine, machineRanks: data.machine_ranks || null, sites: data.sites, costKind: data.cost_kind,
    limit: isShared ? null : data.memory_limit, processLimit: isShared ? data.memory_limit : null, measured, isShared, vertices, plans, refused: data.refused, alike, layers};
}

/** "packed 6x16 (AVX2), 35 parts; 8 times for i=1024 k=1024, and 4 others": how tasks compute a vertex. */
function kernelText({kernel, otherKernels}) {
  const chunk = Object.entries(kernel.extents).map(([label, extent]) => `${label}=${extent}`).join(" ");
  const others = otherKernels.reduce((sum, {times}) => sum + times, 0);
  return `${kernel.path}; ${kernel.times === 1 ? "once" : `${kernel.times} times`} for ${chunk || "one number"}${others > 0 ? `, and ${others} others` : ""}`;
}

/** What vertices can be coloured and ranked by: a figure of theirs, and its name. */
function kindsOf(model) {
  return [["seconds", "time"], ["bytes", "bytes"], ...(model.measured === null ? [] : [["measured", "measured time"]])];
}

/** The vertices that are drawn: all of them, or of equal layers the first; `at` says which one stands for each vertex. */
function viewOf(model, isFolded) {
  const shown = model.vertices.map(({id}) => id);
  if (isFolded) {
    for (const [first, {members}] of model.alike) members.forEach((id) => { shown[id] = first; });
  }
  const ids = shown.filter((first, id) => first === id);
  const places = new Map(ids.map((id, place) => [id, place]));
  const at = shown.map((first) => places.get(first));
  const vertices = ids.map((id, place) => ({id: place, isInput: model.vertices[id].isInput, isOutput: false,
    inputs: model.vertices[id].inputs.map((input) => at[input]), consumers: []}));
  for (const vertex of vertices) {
    for (const input of new Set(vertex.inputs)) vertices[input].consumers.push(vertex.id);
  }
  for (const {id, isOutput} of model.vertices) vertices[at[id]].isOutput ||= isOutput;
  return {isFolded, ids, at, vertices};
}

/** What a vertex costs by a plan; where it stands for others, all of them together. */
function figuresOf(model, plan, id, isFolded) {
  const vertex = model.vertices[id];
  const planned = model.plans[plan].vertices[id];
  const group = isFolded ? model.alike.get(id) : undefined;
  if (group === undefined) {
    return {times: 1, seconds: planned.seconds, bytes: planned.bytes, operandBytes: planned.operandBytes,
      measured: vertex.measured === null ? 0 : vertex.measured.seconds};
  }
  const together = group.plans[plan];
  return {times: group.members.length, seconds: together.seconds, bytes: together.bytes, operandBytes: together.operand_bytes,
    measured: group.measured === null || vertex.isInput ? 0 : group.measured.seconds};
}

/** "Q_1" or, where it stands for others, "Q_1 x 32". */
const nameOf = (model, id, {times}) => times > 1 ? `${model.vertices[id].name} \u00d7 ${times}` : model.vertices[id].name;

/** The figure of this kind, as text. */
const kindText = (kind, figures) => kind === "bytes" ? bytesText(figures.bytes) : secondsText(figures[kind]);

/** A part of what all takes, as text; "" of what was measured, where threads compute side by side. */
function partText(model, plan, kind, figures) {
  const all = kind === "measured" ? 0 : model.plans[plan].cost[kind];
  return all > 0 ? shareText(figures[kind] / all) : "";
}

/** How a tensor is cut whose dimensions are made of these labels: an axis per dimension. */
function axesOf(vertex, planned, dimensions, shape) {
  return dimensions.map((labels, dim) => {
    const label = labels.length > 0 ? labels[0] : null;
    const parts = label === null ? 1 : planned.parts.get(label) || 1;
    const axis = {dim, extent: shape[dim], label: labels.join(" "), parts, unit: 1, grid: 1, stride: 0};
    if (parts === 1) return axis;
    for (const other of labels.slice(1)) axis.unit *= vertex.extents.get(other);
    return {...axis, key: label, grid: planned.sites.get(label) || 1, stride: planned.strides.get(label) || 0};
  });
}

const reducedLabels = (vertex) => {
  const kept = new Set(vertex.resultLabels.flat());
  return vertex.labels.filter((label) => !kept.has(label));
};

/** The labels over which sites have partial results, each with its sites. */
const spreadReductions = (vertex, planned) =>
  reducedLabels(vertex).map((label) => [label, planned.sites.get(label) || 1]).filter(([, sites]) => sites > 1);

/** The sites along a label of the result: more than compute it where those that have partial results share it out. */
function ownersAlong(vertex, planned, label) {
  const sites = planned.sites.get(label) || 1;
  if (planned.scatter !== label) return sites;
  return spreadReductions(vertex, planned).reduce((product, [, each]) => product * each, sites);
}

/** Of the result: where the coordinates of all reduced labels are 0, or along `scatter` as they count on; on all of them where all have the sum. */
function resultLayout(vertex, planned) {
  const axes = axesOf(vertex, planned, vertex.resultLabels, vertex.shape);
  for (const axis of axes) {
    if (axis.key !== planned.scatter) continue;
    axis.grid = ownersAlong(vertex, planned, axis.key);
    axis.stride = Math.min(...spreadReductions(vertex, planned).map(([label]) => planned.strides.get(label)));
  }
  const sums = planned.allReduced ? spreadReductions(vertex, planned).map(([label, count]) =>
    ({count, stride: planned.strides.get(label) || 0})) : [];
  return {axes, copies: [...planned.copies, ...sums]};
}

/** What a vertex needs of an operand: every label that the operand lacks is a direction of copies, beside those of all that computes alike. */
function neededLayout(model, vertex, operand, planned) {
  const dimensions = vertex.operandLabels[operand];
  const read = new Set(dimensions.filter((labels) => labels.length > 0).map((labels) => labels[0]));
  const copies = [...planned.copies];
  for (const label of vertex.labels) {
    const grid = planned.sites.get(label) || 1;
    if (!read.has(label) && grid > 1) copies.push({label, count: grid, stride: planned.strides.get(label) || 0});
  }
  const axes = axesOf(vertex, planned, dimensions, model.vertices[vertex.inputs[operand]].shape);
  for (const {operand: of, dimension, label, coefficient, low, high} of planned.windows) {
    if (of === operand) axes[dimension].window = {coefficient, low, high, extent: vertex.extents.get(label)};
  }
  return {axes, copies};
}

/** The first of `units` that is in a part, when they are cut evenly; `parts` gives `units`. */
const firstOf = (units, parts, part) => part * Math.floor(units / parts) + Math.min(part, units % parts);

/** Where a chunk begins; `parts` gives the end of the last. In windows, which may overlap and go backwards, where its own part begins. */
function chunkBegin({extent, unit, parts, window}, part) {
  if (!window) return unit * firstOf(Math.floor(extent / unit), parts, part);
  const {coefficient, high} = window;
  if (part === 0 || part === parts) return (part === 0) === (coefficient > 0) ? 0 : extent;
  const at = coefficient * firstOf(window.extent, parts, part) + (coefficient > 0 ? 0 : high + 1);
  return Math.max(0, Math.min(at, extent));
}

/** The elements of a chunk, with its halos: from the first to before the second number. */
function chunkRange(axis, part) {
  if (!axis.window) return [chunkBegin(axis, part), chunkBegin(axis, part + 1)];
  const {coefficient, low, high, extent} = axis.window;
  const [first, next] = [firstOf(extent, axis.parts, part), firstOf(extent, axis.parts, part + 1)];
  const longest = firstOf(extent, axis.parts, 1);  // shorter parts' chunks are as long
  const begin = coefficient * (coefficient > 0 ? first : first + longest - 1) + low;
  const end = coefficient * (coefficient > 0 ? next - 1 : first) + high + 1;
  const between = Math.max(0, Math.abs(coefficient) - (high - low + 1));
  const inside = (at) => Math.max(0, Math.min(at, axis.extent));
  return [inside(begin), Math.max(inside(begin), inside(Math.max(end, Math.min(end + between, axis.extent))))];
}

const coordinateOf = (axis, part) => Math.floor(part * axis.grid / axis.parts);

/** The sites that hold the chunk with these parts, ascending; a label that stands twice counts once. */
function sitesOf(layout, parts) {
  let site = 0;
  const counted = new Set();
  layout.axes.forEach((axis, dim) => {
    const at = coordinateOf(axis, parts[dim]);
    if (axis.grid === 1) return;
    if (!counted.has(axis.stride)) site += at * axis.stride;
    counted.add(axis.stride);
  });
  let sites = [site];
  for (const {count, stride} of layout.copies) {
    sites = sites.flatMap((first) => Array.from({length: count}, (_, n) => first + n * stride));
  }
  return sites.sort((a, b) => a - b);
}

/** Ascending; copies in steps that follow each other are copies in one. */
function mergedCopies(copies) {
  const merged = [];
  for (const [stride, count] of copies.map(({count, stride}) => [stride, count]).sort((x, y) => x[0] - y[0])) {
    const last = merged[merged.length - 1];
    if (last && last[0] * last[1] === stride) last[1] *= count;
    else merged.push([stride, count]);
  }
  return merged;
}

/** Whether two layouts put the same chunks on the same sites. */
function sameLayout(a, b) {
  const text = ({axes, copies}) => JSON.stringify([
    axes.map((axis) => [axis.parts, axis.parts > 1 ? axis.unit : 1, axis.grid, axis.stride, axis.window]),
    mergedCopies(copies)]);
  return text(a) === text(b);
}

/** "i=2 k=2", "j=2 of 4" for 2 sites of 4 parts, "j=4, result k=4" where 4 sites share it out along k; "i=2, 4 copies" where 4 compute the same; "whole"; of an input "2x4". */
function cutText(vertex, planned) {
  const copies = planned.copies.reduce((product, {count}) => product * count, 1);
  const copied = copies > 1 ? `, ${copies} copies` : "";
  if (vertex.isInput) {
    const parts = vertex.labels.map((label) => planned.parts.get(label) || 1);
    return parts.every((each) => each === 1) ? `whole${copied}` : `cut ${parts.join("\u00d7")}${copied}`;
  }
  const texts = [];
  for (const label of vertex.labels) {
    const [parts, sites] = [planned.parts.get(label) || 1, planned.sites.get(label) || 1];
    const isOnePartEach = parts === ownersAlong(vertex, planned, label);
    if (parts === 1 || (isOnePartEach && sites === 1)) continue;
    texts.push(isOnePartEach ? `${label}=${sites}` : `${label}=${sites} of ${parts}`);
  }
  if (texts.length === 0) return `whole${copied}`;
  const {scatter} = planned;
  return texts.join(" ") + copied + (planned.allReduced ? ", result on each" : scatter === null ? "" : `, result ${scatter}=${ownersAlong(vertex, planned, scatter)}`);
}
