"""Plans as a page: explain --html. That it is whole and safe, and that a browser draws it.

Usage: html_test.py EINREL
"""

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
# For every vertex, from the chunks that the page draws: the bytes of an operand that its sites need and do not have.
BYTES_OF_GRIDS = """
const boxes = (layout) => {
  const all = new Map();  // site: the range of each dimension that its chunks span
  for (const parts of combinations(layout.axes)) {
    const ranges = parts.map((part, dim) => [chunkBegin(layout.axes[dim], part), chunkBegin(layout.axes[dim], part + 1)]);
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
      const key = input + JSON.stringify([need.axes.map(({parts, unit, grid, stride}) => [parts, unit, grid, stride]),
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
        for vertex in wanted["vertices"]:
            del vertex["kernel"]["considered"]
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
        for pattern in (r"https?://", r"\bsrc\s*=", r"\bhref\s*=", r"url\(", r"@import", r"\bimport\s*\(", r"\bfetch\(",
                        r"\{\{\w+\}\}"):
            self.assertIsNone(re.search(pattern, page), pattern)
        self.assertIn("default-src 'none'", page)

    def test_a_large_model_makes_a_small_page(self):
        path, page = self.page_of(os.path.join(EXAMPLES, "llama_7b.ein"), "--sites", "16", "--planner", "sequence",
                                  "--planner", "tensor")
        self.assertLess(os.path.getsize(path), 3_000_000)
        self.assertGreater(len(self.data_of(page)["vertices"]), 700)

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

    def drawn(self, path, fragment=""):
        """The page after its scripts have run, and what it says of itself in the attributes of <html>."""
        marks = {}
        while "ready" not in marks and self.budget < 1e5:
            shown = self.browse(f"file://{path}{fragment}", "--dump-dom")
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

    def test_a_planner_without_a_plan_is_a_row_with_the_reason(self):
        path, _ = self.page_of(self.text_file("p.ein", CHAIN), "--sites", "4", "--planner", "sqrt", "--planner", "heads")
        shown, _ = self.drawn(path)
        self.assertRegex(shown, r"<td>heads</td><td[^>]*>no plan: there is no attention in it")

    def test_three_thousand_vertices(self):
        program = self.text_file("big.ein", program_of(3000))
        path, _ = self.page_of(program, "--sites", "4", "--planner", "sqrt")
        _, marks = self.drawn(path)
        self.assertEqual(marks["drawn"], "3002")
        self.assert_picture(path)

    def test_a_model_of_a_thousand_vertices(self):
        path, page = self.page_of(os.path.join(EXAMPLES, "llama_7b.ein"), "--sites", "16", "--planner", "sequence",
                                  "--planner", "tensor")
        _, marks = self.drawn(path)
        self.assertEqual(int(marks["drawn"]), len(self.data_of(page)["plans"][0]["vertices"]))

    def test_grids_show_the_bytes_that_plans_move(self):
        for program, sites in ((self.text_file("p.ein", CHAIN), 6), (self.text_file("v.ein", VIEWS), 4),
                               (self.text_file("g.ein", GRADIENT), 6),
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
