"""Plans as a page: explain --html. That it is whole and safe, and that a browser draws it.

Usage: html_test.py EINREL
"""

import html
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib

import numpy as np

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402

MPIRUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "mpirun")
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
CHAIN = """dims i=2600 j=3700 k=1800 l=500
input A[i,j], B[j,k], C[k,l]
D[i,k] = sum[j] A[i,j] * B[j,k]
E[i,l] = sum[k] D[i,k] * C[k,l]
F[i,l] = relu(E[i,l])
output F
"""
VIEWS = """dims b=6 h=5 d=7 e=35
input X[b,e], W[h,d]
V[b,e] = X[b,e] * 2
H[b,h,d] = view V[b,(h d)]
Y[b,h] = sum[d] H[b,h,d] * W[h,d]
output Y
"""
GRADIENT = """dims b=100000 h=64 l=32
input A[b,h], D[b,l], W[h,l]
G[h,l] = sum[b] A[b,h] * D[b,l]
V[h,l] = W[h,l] - 0.01 * G[h,l]
output V
"""
# Offsets, flips, strides with and without gaps, dilation, and two windows of one tensor.
WINDOWS = """dims y=24 x=18 r=3 s=2 u=48 q=50
input X[u], K[r], P[y,x], Q[q]
F[y] = X[23-y] * 2
S[y] = max[r] pad(X[2*y+r-1], 0) * K[r]
N[y] = X[2*y+1]
T[y] = sum[s] X[2*y+s]
D[y,x] = sum[r] pad(P[y+2*r-2,x], 0) * K[r]
G[y,x] = D[y,17-x] + D[y,x]
E[y] = Q[y+1] - Q[y]
output F, S, N, T, G, E
"""
# For every vertex, from the chunks that the page draws: the bytes of an operand that its sites need and do not have.
BYTES_OF_GRIDS = """
const boxes = (layout) => {
  const all = new Map();  // site: the range of each dimension that its chunks span
  for (const parts of combinations(layout.axes)) {
    const ranges = parts.map((part, dim) => chunkRange(layout.axes[dim], part));
    for (const site of sitesOf(layout, parts)) {
      const box = all.get(site);
      all.set(site, box ? box.map(([a, b], dim) => [Math.min(a, ranges[dim][0]), Math.max(b, ranges[dim][1])]) : ranges);
    }
  }
  return all;
};
const volume = (ranges) => ranges.reduce((product, [begin, end]) => product * Math.max(0, end - begin), 1);
const sizes = {f32: 4, f64: 8, i64: 8, i32: 4, bf16: 2, f16: 2, bool: 1};
const wrong = [];
let compared = 0;
for (const plan of model.plans) {
  const sent = new Set();
  for (const vertex of model.vertices) {
    vertex.inputs.forEach((input, operand) => {
      const need = neededLayout(model, vertex, operand, plan.vertices[vertex.id]);
      const have = boxes(resultLayout(model.vertices[input], plan.vertices[input]));
      let bytes = 0;
      for (const [site, ranges] of boxes(need)) {
        const held = have.get(site);
        const kept = held ? volume(ranges.map(([a, b], d) => [Math.max(a, held[d][0]), Math.min(b, held[d][1])])) : 0;
        bytes += (volume(ranges) - kept) * sizes[model.vertices[input].dtype];
      }
      const key = input + JSON.stringify([need.axes.map(({parts, unit, grid, stride, window}) => [parts, unit, grid, stride, window]),
                                          [...boxes(need).keys()]]);
      const told = plan.vertices[vertex.id].operandBytes[operand];
      if (told !== bytes && !(told === 0 && sent.has(key))) wrong.push([plan.planner, vertex.name, operand, told, bytes]);
      sent.add(key);
      compared += 1;
    });
  }
}
document.documentElement.dataset.compared = compared;
document.documentElement.dataset.wrong = JSON.stringify(wrong.slice(0, 5));
"""


# Looks at everything that the page says, whatever is chosen: elements, their titles and labels, tips, what is drawn.
WORDS_OF_THE_PAGE = """
const said = new Set();
const {fillText} = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function(text, ...rest) {
  said.add(String(text));
  return fillText.call(this, text, ...rest);
};
const look = () => {
  const {body} = document;
  for (const part of body.querySelectorAll(":not(script):not(style)")) {
    for (const child of part.childNodes) if (child.nodeType === Node.TEXT_NODE) said.add(child.data);
    for (const name of ["title", "aria-label", "style"]) if (part.hasAttribute(name)) said.add(part.getAttribute(name));
  }
};
const some = model.vertices.length > 60 ? model.vertices.filter(({id}) => id % 29 === 0) : model.vertices;
let pages = 0;
for (const [kind] of kindsOf(model)) {
  for (const isFolded of model.alike.size > 0 ? [true, false] : [false]) {
    for (let plan = 0; plan < model.plans.length; ++plan) {
      Object.assign(state, {kind, isFolded, plan});
      costs.ranking = kind;
      costs.isMemory = !costs.isMemory;
      for (const {id} of some) {
        callbacks.select(id);
        if (id % 7 === 0) graph.move(graph.nearTo(id));
        graph.drawNow();
        look();
        said.add(graph.tipOf(id));
        for (const grid of details.grids) said.add(grid.textAt(0, 0));
        said.add(panes.get("memory").plan ? panes.get("memory").textAt(id) : "");
        ++pages;
      }
      for (const pane of panes.keys()) {
        state.pane = pane;
        show();
        look();
        const {sums} = panes.get("messages");
        if (pane === "messages" && sums) said.add(panes.get("messages").textAt(0, sums.length - 1));
      }
      state.pane = "costs";
      show();
      costs.bars.getBoundingClientRect = () => ({left: 0, width: 100});
      costs.hoverSite({clientX: 50, clientY: 5});
      said.add(byId("tip").textContent);
    }
  }
}
search.value = "a";
findVertices();
look();
const {dataset} = document.documentElement;
dataset.pages = pages;
dataset.said = said.size;
dataset.strange = JSON.stringify([...said].filter((text) => /\\b(null|undefined|NaN|Infinity)\\b|\\[object|\\?/.test(text)).slice(0, 9));
dataset.words = JSON.stringify([...said]);
"""
# The parts of the page whose content sticks out of them.
PARTS_CUT_OFF = """
for (const pane of ["memory", "messages", ...(panes.has("compared") ? ["compared"] : []), "costs", "costs"]) {
  state.pane = pane;
  costs.isMemory = !costs.isMemory;
  show();
  for (const part of document.querySelectorAll("header, main, .card, #details")) {
    if (part.hidden) continue;
    const isCut = part.scrollWidth > part.clientWidth || (part.id === "sites" && part.scrollHeight > part.clientHeight);
    if (isCut) document.documentElement.dataset.cut = `${document.documentElement.dataset.cut || ""} ${part.id || part.tagName}`;
  }
}
"""


def recurrence_of(steps):
    """A state of several steps, equal but for their names, then a number."""
    lines = ["dims b=64 h=96", "input X[b,h], W[h,h]", "H0[b,h] = X[b,h] * 2"]
    lines += [f"H{i}[b,h] = tanh(sum[g] H{i - 1}[b,g] * W[g,h])" for i in range(1, steps + 1)]
    return "\n".join([*lines, f"loss[] = mean[b,h] sq(H{steps}[b,h])", f"output loss, H{steps}"]) + "\n"


def program_of(vertices):
    """A program of that many vertices, in which each reads one or two of those shortly before it."""
    lines = ["dims a=512 b=512 c=512", "input X0[a,b], W[b,b]"]
    for i in range(1, vertices + 1):
        near, far = f"X{i - 1}", f"X{max(0, i - 1 - i * 7 % 5)}"
        lines.append((f"X{i}[a,b] = sum[c] {near}[a,c] * W[c,b]", f"X{i}[a,b] = {near}[a,b] + {far}[a,b]",
                      f"X{i}[a,b] = relu({near}[a,b])")[i % 3])
    return "\n".join([*lines, f"output X{vertices}"]) + "\n"


def decode_png(path, most_rows):
    """Size of a PNG with 8 bits per channel, and its upper rows: rows x width x channels."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    channels = {2: 3, 6: 4}[colour]
    assert depth == 8, depth
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)[:most_rows]
    image = np.zeros((len(rows) + 1, width, channels), np.uint8)  # row 0 is what stands above the first
    for y, row in enumerate(rows):
        image[y + 1] = unfiltered(row[0], row[1:].reshape(width, channels), image[y])
    return (width, height), image[1:]


def unfiltered(kind, row, above):
    """A row of width x channels from what PNG's filter of this kind has left of it, and the row above."""
    if kind < 3:
        return (row, np.cumsum(row, axis=0, dtype=np.uint8), row + above)[kind]
    result, channels = [], row.shape[1]
    over = above.ravel().tolist()
    for at, value in enumerate(row.ravel().tolist()):
        left, corner = (result[at - channels], over[at - channels]) if at >= channels else (0, 0)
        up = over[at]
        if kind == 3:
            guess = (left + up) // 2
        else:
            to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            guess = left if to_left <= to_up and to_left <= to_corner else up if to_up <= to_corner else corner
        result.append((value + guess) & 255)
    return np.array(result, np.uint8).reshape(row.shape)


def without_the_unshown(report):
    """Most of the text, which the page does not show."""
    del report["initial"]
    for vertex in report["vertices"]:
        del vertex["operation"]
        for kernel in (vertex["kernel"], *vertex["other_kernels"]):
            del kernel["considered"]


class HtmlTest(process.ProgramTest):
    def page_of(self, program, *arguments):
        """Path and text of the page of a program."""
        path = self.path("plan.html")
        self.assertIn("plan.html", self.succeed("explain", program, *arguments, "--html", path).out)
        with open(path, encoding="utf-8") as file:
            return path, file.read()

    @staticmethod
    def data_of(page):
        (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
        return json.loads(text)


class Pages(HtmlTest):
    def test_the_data_is_that_of_json(self):
        arguments = (self.text_file("p.ein", CHAIN), "--sites", "6", "--planner", "eindecomp", "--planner", "sqrt")
        _, page = self.page_of(*arguments)
        found, wanted = self.data_of(page), json.loads(self.succeed("explain", *arguments, "--json").out)
        without_the_unshown(wanted)
        for plan in (*found["plans"], *wanted["plans"]):
            self.assertGreaterEqual(plan.pop("plan_seconds"), 0)
        self.assertEqual(found, wanted)
        self.assertEqual([plan["planner"] for plan in found["plans"]], ["eindecomp", "sqrt"])

    def test_both_a_page_and_json(self):
        shown = self.succeed("explain", self.text_file("p.ein", CHAIN), "--html", self.path("p.html"), "--json")
        self.assertEqual(json.loads(shown.out)["sites"], 1)
        self.assertTrue(os.path.exists(self.path("p.html")))

    def test_json_says_which_labels_cut_which_dimensions(self):
        shown = json.loads(self.succeed("explain", self.text_file("v.ein", VIEWS), "--sites", "2", "--json",
                                        "--planner", "sqrt").out)
        labels = {vertex["name"]: (vertex["result_labels"], vertex["operand_labels"]) for vertex in shown["vertices"]}
        self.assertEqual(labels["H"], ([["b"], ["h"], ["d"]], [[["b"], ["h", "d"]]]))
        self.assertEqual(labels["Y"], ([["b"], ["h"]], [[["b"], ["h"], ["d"]], [["h"], ["d"]]]))

    def test_it_loads_nothing(self):
        _, page = self.page_of(self.text_file("p.ein", CHAIN), "--sites", "4")
        page = page.replace("http://www.w3.org/2000/svg", "")  # what SVG's elements are called by, which is no address
        for pattern in (r"https?://", r"\bsrc\s*=", r"\bhref\s*=", r"url\(", r"@import", r"\bimport\s*\(", r"\bfetch\(",
                        r"\{\{\w+\}\}"):
            self.assertIsNone(re.search(pattern, page), pattern)
        self.assertIn("default-src 'none'", page)

    def test_a_large_model_makes_a_small_page(self):
        path, page = self.page_of(os.path.join(EXAMPLES, "llama_7b.ein"), "--sites", "16", "--planner", "sequence",
                                  "--planner", "tensor")
        self.assertLess(os.path.getsize(path), 3_000_000)
        self.assertGreater(len(self.data_of(page)["vertices"]), 700)

    def test_equal_layers_are_told_once_with_what_they_cost_together(self):
        program = self.text_file("r.ein", recurrence_of(50))
        data = json.loads(self.succeed("explain", program, "--sites", "4", "--planner", "eindecomp", "--planner", "sqrt", "--json").out)
        (layers,) = data["layers"]  # the last one has no other behind it, and may be cut in another way
        self.assertIn(layers, [{"times": times, "vertices": ["H1_1", "H1"], "last": f"H{times}"} for times in (49, 50)])
        self.assertEqual([group["vertices"] for group in data["alike"]],
                         [[f"H{i}_1" for i in range(1, layers["times"] + 1)], [f"H{i}" for i in range(1, layers["times"] + 1)]])
        for at, plan in enumerate(data["plans"]):
            vertices = {vertex["name"]: vertex for vertex in plan["vertices"]}
            for group in data["alike"]:
                alike, together = [vertices[name] for name in group["vertices"]], group["plans"][at]
                self.assertAlmostEqual(together["seconds"], sum(vertex["seconds"] for vertex in alike), delta=1e-12)
                for figure in ("bytes", "reduced_bytes"):
                    self.assertEqual(together[figure], sum(vertex[figure] for vertex in alike))
                self.assertEqual(together["operand_bytes"], [sum(each) for each in zip(*(v["operand_bytes"] for v in alike))])

    def test_each_plan_says_what_sites_hold_and_the_second_best_cuts(self):
        arguments = (self.text_file("p.ein", CHAIN), "--sites", "6", "--planner", "eindecomp", "--planner", "single")
        data = json.loads(self.succeed("explain", *arguments, "--memory", "200M", "--cost", "bytes", "--json").out)
        self.assertEqual((data["memory_limit"], data["cost_kind"]), (200_000_000, "bytes"))
        for plan in data["plans"]:
            held = plan["peak_memory"]
            self.assertEqual(len(held["by_site"]), 6)
            self.assertEqual((held["predicted"], held["site"]), (max(held["by_site"]), held["by_site"].index(max(held["by_site"]))))
            self.assertEqual(held["predicted"], max(v["peak_memory"]["predicted"] for v in plan["vertices"] if "peak_memory" in v))
            self.assertEqual(plan["most_received"], max(plan["received"]))
        self.assertEqual(data["plans"][1]["peak_memory"]["by_site"][1:], [0] * 5)
        more = [vertex["runner_up"]["more"] for vertex in data["plans"][0]["vertices"] if vertex.get("runner_up")]
        self.assertTrue(more and min(more) >= 0, more)

    def test_what_a_site_holds_and_who_sends_to_whom_add_up(self):
        shown = []
        for arguments in ((self.text_file("p.ein", CHAIN), "--sites", "6"), (self.text_file("r.ein", recurrence_of(9)), "--sites", "4"),
                          (os.path.join(EXAMPLES, "dense_layers.ein"), "--machine", "rack-of-racks")):
            data = json.loads(self.succeed("explain", *arguments, "--planner", "eindecomp", "--planner", "sqrt", "--planner", "single", "--json").out)
            inputs = set(data["inputs"])
            for plan in data["plans"]:
                with self.subTest(program=arguments[0], planner=plan["planner"]):
                    peak = plan["peak_memory"]
                    held = [sum(each["bytes"] for each in plan["held"] if each["from"] <= at <= each["to"]) for at in range(len(plan["vertices"]))]
                    of = {vertex["name"]: bytes_ for vertex, bytes_ in zip(plan["vertices"], held, strict=True) if vertex["name"] not in inputs}
                    if plan["held"]:  # else the peak is that of tasks, of which only it is known
                        self.assertEqual((of[peak["vertex"]], max(of.values())), (peak["predicted"], peak["by_site"][peak["site"]]))
                    shown.append(bool(plan["held"]))
                    for vertex in plan["vertices"]:
                        self.assertLessEqual(of.get(vertex["name"], 0), vertex.get("peak_memory", {"predicted": 0})["predicted"])
                    sent, together = plan["sent"]["bytes"], plan["sent"]["sites_together"]
                    received = np.add.reduceat(plan["received"], range(0, plan["sites"], together))
                    self.assertEqual(np.sum(sent, axis=0).tolist(), received.tolist())
                    self.assertEqual(np.sum(sent), plan["cost"]["bytes"])
        self.assertGreater(sum(shown), len(shown) // 2)

    def test_other_cuts_are_exact(self):
        """The cheapest other cut of the only product, given as a plan, costs as much more as was said."""
        program = self.text_file("m.ein", "dims i=600 j=500 k=400\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\noutput C\n")
        asked = (program, "--sites", "4", "--cost", "bytes", "--json")
        data = json.loads(self.succeed("explain", *asked).out)
        (group,) = data["plans"][0]["other_cuts"]
        more = [cut["more"] for cut in group["cuts"]]
        self.assertEqual((group["vertices"], more), (["C"], sorted(more)))
        self.assertEqual(more[0], data["vertices"][0]["runner_up"]["more"])
        rows = [cut for cut in group["cuts"] if cut["sites"] == {"i": 4} and "scatter" not in cut]
        # By rows, all four sites need all of B, of which each has a quarter.
        self.assertEqual([data["cost"]["bytes"] + cut["more"] for cut in rows], [3 * 500 * 400 * 4])

    def test_labels_that_no_plan_cuts_have_a_reason(self):
        program = self.text_file("w.ein", "dims b=1 n=6 m=6\ninput A[b,n,m]\nC[b,n,m] = inverse[n,m](A[b,n,m])\noutput C\n")
        (vertex,) = json.loads(self.succeed("explain", program, "--sites", "4", "--json").out)["vertices"]
        self.assertEqual(set(vertex["not_cut"]), {"b", "n", "m"})
        self.assertEqual(vertex["not_cut"]["b"], "its extent is 1")
        self.assertIn("whole matrices", vertex["not_cut"]["n"])
        self.assertIn("not cut: b, as its extent is 1", self.succeed("explain", program, "--sites", "4", "--verbose").out)

    def test_several_numbers_of_sites_have_a_page_of_curves(self):
        arguments = (self.text_file("p.ein", CHAIN), "--sites", "1,2,4", "--planner", "eindecomp", "--planner", "heads")
        _, page = self.page_of(*arguments)
        found, wanted = self.data_of(page), json.loads(self.succeed("explain", *arguments, "--json").out)
        for row in (*found["sweep"], *wanted["sweep"]):
            row.pop("plan_seconds", None)
        self.assertEqual(found, wanted)
        self.assertIn("default-src 'none'", page)
        self.refuse(1, "explain", *arguments, "--html", arguments[0], mentions=["p.ein"])

    def test_a_run_makes_a_page_of_what_it_measured(self):
        page, shown = self.path("run.html"), []
        for arguments in ((), ("--sites", "4"), ("--sites", "4", "--repeat", "3")):
            report = self.succeed("run", self.text_file("r.ein", recurrence_of(12)), "--random", "1", *arguments, "--html", page, "--json")
            with open(page, encoding="utf-8") as file:
                shown.append(self.data_of(file.read()))
            wanted = json.loads(report.out)
            without_the_unshown(wanted)
            self.assertEqual(shown[-1], wanted)
        self.assertEqual(len(shown[-1]["measured"]["seconds_of_runs"]), 3)
        for data in shown:
            seconds = {vertex["name"]: vertex["seconds"] for vertex in data["vertices"]}
            for group in data["alike"]:
                self.assertAlmostEqual(group["measured"]["seconds"], sum(seconds[name] for name in group["vertices"]), delta=1e-12)
            self.assertEqual([group["vertices"][0] for group in data["alike"]], ["H1_1", "H1"])

    def test_a_run_writes_no_two_things_to_one_file(self):
        program = self.text_file("p.ein", recurrence_of(1))
        there = self.text_file("x.json", "{}")
        same = os.path.join(self.folder, ".", "new.html")
        for arguments in (("--html", program), ("--html", self.path("new.html"), "--trace", same),
                          ("--html", self.path("new.html"), "--out", f"loss={same}"), ("--html", there, "--plan", there)):
            self.refuse(1, "run", program, "--random", "1", *arguments, "--overwrite")
        self.assertEqual(sorted(os.listdir(self.folder)), ["p.ein", "x.json"])
        self.refuse(1, "run", program, "--random", "1", "--html", self.path("missing/x.html"), mentions=["missing"])

    def test_an_older_page_is_replaced_and_nothing_else_left(self):
        path = self.text_file("plan.html", "old")
        program = self.text_file("p.ein", CHAIN)
        self.refuse(1, "explain", program, "--planner", "data", "--batch", "nowhere", "--sites", "2", "--html", path,
                    mentions=["nowhere"])
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")
        self.assertIn("<!doctype html>", self.page_of(program)[1])
        self.assertEqual(sorted(os.listdir(self.folder)), ["p.ein", "plan.html"])

    def test_where_none_can_be_written_it_is_refused_at_once(self):
        program = self.text_file("p.ein", CHAIN)
        for path, mentions in ((self.path("missing/plan.html"), ["missing"]), (self.folder, [self.folder]), ("", [])):
            self.refuse(1, "explain", program, "--sites", "4", "--planner", "data", "--html", path, mentions=mentions)

    def test_relations_have_no_page(self):
        self.refuse(1, "explain", os.path.join(EXAMPLES, "matmul.tra"), "--html", self.path("x.html"), mentions=["--html"])
        self.refuse(1, "explain", self.text_file("p.ein", CHAIN), "--planner", "ia-rules", "--html", self.path("x.html"),
                    mentions=["--html"])
        self.assertFalse(os.path.exists(self.path("x.html")))


class InABrowser(HtmlTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = shutil.which("chromium")
        if cls.browser is None:
            raise AssertionError("these tests need a browser: apt-get install chromium")

    budget = 1200  # virtual milliseconds, until a loaded machine needs more for the first frame

    def browse(self, url, *options):
        command = [self.browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,640",
                   f"--user-data-dir={self.path('profile')}", f"--virtual-time-budget={self.budget}", *options, url]
        done = subprocess.run(command, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr.decode("utf-8", "backslashreplace"))
        return done.stdout.decode("utf-8", "backslashreplace")

    def drawn(self, path, fragment="", *options):
        """The page after its scripts have run, and what it says of itself in the attributes of <html>."""
        marks = {}
        while "ready" not in marks and self.budget < 1e5:
            shown = self.browse(f"file://{path}{fragment}", "--dump-dom", *options)
            marks = dict(re.findall(r'data-([\w-]+)="([^"]*)"', re.search(r"<html[^>]*>", shown)[0]))
            self.assertNotIn("error", marks)
            if "ready" not in marks:
                InABrowser.budget *= 5
        self.assertEqual(marks.get("ready"), "1", shown[-2000:])
        return shown, marks

    def assert_picture(self, path, *options):
        picture = self.path("plan.png")
        colours = counts = []
        while len(colours) <= 200 and self.budget < 1e5:
            self.browse(f"file://{path}", f"--screenshot={picture}", *options)
            size, image = decode_png(picture, 300)
            self.assertEqual(size, (1100, 640))
            image = image[:, :, :3]
            colours, counts = np.unique(image.reshape(-1, 3), axis=0, return_counts=True)
            if len(colours) <= 200:
                InABrowser.budget *= 5
        self.assertGreater(len(colours), 200)
        self.assertLess(counts.max(), 0.9 * counts.sum(), "hardly anything but background")
        graph = image[70:300, 40:500].reshape(-1, 3)
        self.assertGreater(len(np.unique(graph, axis=0)), 30, "the graph is empty")
        return image

    def test_three_vertices(self):
        path, _ = self.page_of(self.text_file("p.ein", CHAIN), "--sites", "4", "--planner", "eindecomp", "--planner", "sqrt")
        shown, marks = self.drawn(path, "#vertex=D&planner=sqrt")
        self.assertEqual(marks["drawn"], "6")
        self.assertIn("D[i,k] = sum[j] A[i,j] * B[j,k]</p>", shown)
        self.assertRegex(shown, r'role="radio" aria-checked="true"[^>]*>sqrt<')
        light = self.assert_picture(path, "--blink-settings=preferredColorScheme=1")
        dark = self.assert_picture(path, "--blink-settings=preferredColorScheme=0")
        self.assertGreater(light.mean(), dark.mean() + 100)

    def test_everything_has_room_on_narrow_and_wide_screens(self):
        run = self.path("run.html")
        self.succeed("run", self.text_file("g.ein", GRADIENT.replace("100000", "1000")), "--sites", "4", "--memory", "1MB", "--random", "1",
                     "--html", run)
        compared, _ = self.page_of(os.path.join(EXAMPLES, "llama_7b.ein"), "--sites", "16", "--planner", "eindecomp", "--planner", "tensor")
        compared = shutil.move(compared, self.path("compared.html"))
        linked, _ = self.page_of(os.path.join(EXAMPLES, "dense_layers.ein"), "--machine", "rack-of-racks", "--planner", "hybrid:16x8",
                                 "--planner", "kcut")
        for path in (run, compared, linked):
            with open(path, encoding="utf-8") as file:
                page = file.read()
            end = page.rindex("})();")
            with open(path, "w", encoding="utf-8") as file:
                file.write(page[:end] + PARTS_CUT_OFF + page[end:])
            for size in ("500,900", "1341,768"):
                with self.subTest(page=path, size=size):
                    _, marks = self.drawn(path, "", f"--window-size={size}")
                    self.assertNotIn("cut", marks)

    def test_curves_say_each_plan(self):
        path, page = self.page_of(self.text_file("p.ein", CHAIN), "--sites", "1,2,4,8", "--planner", "eindecomp", "--planner", "sqrt", "--planner", "heads")
        for size in ("500,900", "1341,768"):
            shown, _ = self.drawn(path, "", f"--window-size={size}")
            rows = self.data_of(page)["sweep"]
            planned = [row for row in rows if "refused" not in row]
            moving = [row for row in planned if row["bytes"] > 0]
            said = shown.split("<script")[0]
            self.assertEqual(said.count("<circle"), len(planned) + len(moving))
            self.assertEqual(said.count("no plan: "), len(rows) - len(planned))
            self.assertNotRegex(said, "NaN|undefined|null|Infinity")

    def test_a_planner_without_a_plan_is_a_row_with_the_reason(self):
        path, _ = self.page_of(self.text_file("p.ein", CHAIN), "--sites", "4", "--planner", "sqrt", "--planner", "heads")
        shown, _ = self.drawn(path)
        self.assertRegex(shown, r"<td>heads</td><td[^>]*>no plan: there is no attention in it")

    def test_each_plan_says_what_crosses_links_and_which_labels_are_cut_there(self):
        path, page = self.page_of(os.path.join(EXAMPLES, "dense_layers.ein"), "--machine", "rack-of-racks", "--planner", "kcut", "--planner", "data")
        units = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
        for plan in self.data_of(page)["plans"]:
            shown, _ = self.drawn(path, f"#vertex=H1_1&planner={plan['planner']}")
            told = re.search(r"Of what is received, (.*?) \(", shown)[1]
            for link, (number, unit, name) in zip(plan["links"], re.findall(r"([\d.]+)\s([kMGT]?B) cross (\w+)", told), strict=True):
                self.assertEqual(name, link["name"])
                self.assertLess(abs(float(number) * units[unit] - link["bytes"]), 0.05 * link["bytes"])
        row = re.search(r'<td class="mono">b</td>(.*?)</tr>', shown)[1]  # by data: along the batch, across racks and servers
        self.assertEqual(re.findall(r">([^<]*)</td>", row), ["512", "128", "128", "+1", "4", "4", ""])

    def told(self, path):
        """All that a page says, whatever is chosen."""
        with open(path, encoding="utf-8") as file:
            page = file.read()
        end = page.rindex("})();")
        with open(path, "w", encoding="utf-8") as file:
            file.write(page[:end] + WORDS_OF_THE_PAGE + page[end:])
        _, marks = self.drawn(path)
        self.assertEqual(marks["strange"], "[]", path)
        self.assertGreater(int(marks["said"]), 30)
        self.assertGreater(int(marks["pages"]), 0)
        return json.loads(html.unescape(marks["words"]))

    def test_nothing_is_said_to_be_unknown(self):
        chain, scalar = self.text_file("p.ein", CHAIN), self.text_file("r.ein", recurrence_of(12))
        numbers = self.text_file("n.ein", "dims i=6 j=1\ninput X[i,j], s[] : f64\nA[i] = sum[j] X[i,j]\nB[] = 2 * s[]\nC[] = max[i] A[i]\n"
                                 "output A, B, C, X\n")
        nothing = self.text_file("x.ein", "dims i=3\ninput X[i]\noutput X\n")
        self.text_file("plan.json", self.succeed("explain", chain, "--sites", "4", "--json").out)
        programs = {
            "one planner": (chain, "--sites", "4"), "one site": (chain,), "nothing moves": (numbers, "--sites", "4"),
            "no vertex": (nothing, "--sites", "2"), "a view": (self.text_file("v.ein", VIEWS), "--sites", "2", "--planner", "sqrt"),
            "several planners": (chain, "--sites", "6", "--planner", "sqrt", "--planner", "eindecomp", "--planner", "single", "--planner", "heads"),
            "a given plan": (chain, "--plan", self.path("plan.json")), "floats": (chain, "--sites", "8", "--cost", "floats"),
            "little memory": (chain, "--sites", "4", "--memory", "40M", "--planner", "eindecomp", "--planner", "single", "--cost", "bytes"),
            "many sites": (self.text_file("g.ein", GRADIENT), "--sites", "96"), "equal layers": (scalar, "--sites", "4"),
            "layers of a model": (os.path.join(EXAMPLES, "llama_7b.ein"), "--sites", "16", "--planner", "eindecomp", "--planner", "tensor"),
        }
        for what, arguments in programs.items():
            with self.subTest(what):
                said = "\n".join(self.told(self.page_of(*arguments)[0]))
                for text, where in {"What moves: nothing": "nothing moves", "Against eindecomp, the fastest": "layers of a model", "Who sends to whom": "one planner",
                                    "Memory, vertex by vertex": "one site", "Next best": "one planner", " allowed": "little memory",
                                    "no plan: ": "several planners", "12 alike": "equal layers", "32 alike": "layers of a model"}.items():
                    if what == where:
                        self.assertIn(text, said)
        runs = {"one site": (numbers,), "sites": (scalar, "--sites", "4", "--repeat", "2"), "a limit": (scalar, "--sites", "2", "--memory", "1M"),
                "no vertex": (nothing,)}
        for what, arguments in runs.items():
            with self.subTest(f"run: {what}"):
                self.succeed("run", *arguments, "--random", "1", "--html", self.path("run.html"))
                said = self.told(self.path("run.html"))
                self.assertIn("memory is shared", said)
                self.assertEqual("Predicted and measured" in said, what != "no vertex")
        with self.subTest("einsum"):
            np.save(self.path("a.npy"), np.ones((4, 5), np.float32))
            self.succeed("einsum", "ij,ij->", self.path("a.npy"), self.path("a.npy"), "--html", self.path("run.html"))
            self.assertIn("Predicted and measured", self.told(self.path("run.html")))

    def test_a_job_shows_what_went_from_rank_to_rank(self):
        page = self.path("job.html")
        done = subprocess.run([MPIRUN, "-n", "2", process.PROGRAM, "run", self.text_file("g.ein", GRADIENT.replace("100000", "1000")),
                               "--random", "1", "--planner", "sqrt", "--html", page, "--json"], capture_output=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        measured = json.loads(done.stdout)["measured"]
        self.assertEqual(len(measured["peak_memory_per_rank"]), 2)
        said = self.told(page)
        self.assertNotIn("memory is shared", said)
        self.assertIn("processes", said)

    def test_equal_layers_are_drawn_once(self):
        path, page = self.page_of(os.path.join(EXAMPLES, "llama_7b.ein"), "--sites", "16")
        data = self.data_of(page)
        hidden = sum(len(group["vertices"]) - 1 for group in data["alike"])
        self.assertGreater(hidden, 900)
        _, marks = self.drawn(path)
        self.assertEqual(int(marks["drawn"]), len(data["plans"][0]["vertices"]) - hidden)
        shown, marks = self.drawn(path, "#vertex=Q_7&layers=all")
        self.assertIn("one of 32 alike", shown)

    def test_three_thousand_vertices(self):
        program = self.text_file("big.ein", program_of(3000))
        path, _ = self.page_of(program, "--sites", "4", "--planner", "sqrt")
        _, marks = self.drawn(path, "#layers=all")
        self.assertEqual(marks["drawn"], "3002")
        self.assert_picture(path)

    def test_a_model_of_a_thousand_vertices(self):
        path, page = self.page_of(os.path.join(EXAMPLES, "llama_7b.ein"), "--sites", "16", "--planner", "sequence",
                                  "--planner", "tensor")
        _, marks = self.drawn(path, "#layers=all")
        self.assertEqual(int(marks["drawn"]), len(self.data_of(page)["plans"][0]["vertices"]))

    def test_grids_show_the_bytes_that_plans_move(self):
        for program, sites in ((self.text_file("p.ein", CHAIN), 6), (self.text_file("v.ein", VIEWS), 4),
                               (self.text_file("g.ein", GRADIENT), 6), (self.text_file("w.ein", WINDOWS), 4), (self.text_file("w.ein", WINDOWS), 5),
                               (os.path.join(EXAMPLES, "llama_layer.ein"), 12), (os.path.join(EXAMPLES, "convolution.ein"), 6)):
            with self.subTest(program=program):
                path, page = self.page_of(program, "--sites", str(sites), "--planner", "eindecomp", "--planner", "sqrt",
                                          "--planner", "all-tile")
                end = page.rindex("})();")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(page[:end] + BYTES_OF_GRIDS + page[end:])
                _, marks = self.drawn(path)
                self.assertEqual(marks["wrong"], "[]")
                self.assertGreater(int(marks["compared"]), 3)

    def test_names_are_only_ever_text(self):
        os.mkdir(self.path("<!--<script>"))
        os.mkdir(self.path("<!--<script>/x<"))
        name = "<!--<script>/x</script><img src=x onerror=\"document.title='hit'\">.ein"
        self.text_file(name, CHAIN.replace("D[", "__proto__[").replace("E[", "constructor["))
        path, page = self.page_of(self.path(name), "--sites", "4")
        self.assertEqual(self.data_of(page)["program"], self.path(name))
        shown, marks = self.drawn(path, "#vertex=__proto__")
        self.assertEqual(marks["drawn"], "6")
        self.assertNotIn("<img", shown.replace(page[page.index("<body>"):page.index("<noscript>")], ""))
        self.assertIn("&lt;img", shown)
        self.assertNotIn("<title>hit", shown)
        self.assertIn("__proto__[i,k] = sum[j] A[i,j] * B[j,k]</p>", shown)


if __name__ == "__main__":
    process.main()
