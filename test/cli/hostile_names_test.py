"""Names that nobody would choose but who means ill: whatever is shown of them is text on one line.

Every option and every kind of file is given each of NAMES, and what the program writes is looked at byte by byte.
"""

import concurrent.futures
import io
import json
import os
import re
import subprocess
import unicodedata
import zipfile

import numpy as np

import einrel_process
from einrel_process import ProgramTest, main

FORGED = b"error: forged"
NAMES = {
    "commands, lines, directions": b"\x1b[31m\r\x07\x7f\t" + "\u009b31m".encode() + b"a\n" + FORGED + "\nb\u2028c\u2029".encode()
                                   + "\u202egnp\u2066a\u2069\u200f\ufeff\u200b\u00ad".encode(),
    "no UTF-8": b"\xff\xfe\x80\xed\xa0\x80\xc3",
    "long and wide": b"x" * 2000 + "\u00e9\u200d".encode() * 600,
    "marks": b"-\\ it's \"%s%n{}{0}  a\\x1bb",
}
# What is refused in text: controls, what changes the direction or is not seen, surrogates, ends of lines.
HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Bytes of a line that shows some names, all of them cut.
MOST = 4000

PROGRAM = b"dims i=4 j=3\ninput X[i,j], W[j]\nZ[i] = sum[j] X[i,j] * W[j]\n"
TRA = b"""input A[8,6] cut <2,2> on <1>
input B[6,4] cut <2,2> on <0>
C = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, B))
"""


def npy_bytes(values):
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def npy_with(dictionary):
    text = dictionary + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def npz_with(name, compression=zipfile.ZIP_STORED):
    """An archive whose member has any bytes as its name; zipfile takes text alone."""
    stand_in = "q" * len(name)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        archive.writestr(stand_in, npy_bytes(np.ones(3, np.float32)))
        archive.writestr("second.npy", npy_bytes(np.ones(3, np.float32)))
    return stream.getvalue().replace(stand_in.encode(), name)


def safetensors_with(name, dtype=b"F32", field=b"dtype"):
    entry = b'":{"' + field + b'":"' + dtype + b'","shape":[3],"data_offsets":[0,12]},"second":{"dtype":"F32",' \
            b'"shape":[3],"data_offsets":[12,24]}}'
    header = b'{"' + name + entry
    return len(header).to_bytes(8, "little") + header + bytes(24)


def in_json(name):
    return name.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


def escaped_in_json(name):
    """The same, as a file that is sound JSON says it."""
    return json.dumps(name.decode("utf-8", "replace"))[1:-1].encode()


MACHINE = (b'{"name": "m", "sites": 2, "cores": 1, "flops_per_core": 1e9, "memory": 1e9, "memory_bandwidth": 1e9, '
           b'"task_seconds": 1e-6, "network_bandwidth": 1e9, "network_latency": 1e-6}')


def of_options(name):
    """Every option with the name as its value, and beside a value."""
    run, explain = [b"run", b"p.ein", b"--random", b"1"], [b"explain", b"p.ein"]
    einsum = [b"einsum", b"ij->i", b"x.npy"]
    for command in (run, explain, einsum):
        for option in (b"--sites", b"--cost", b"--machine", b"--memory", b"--batch", b"--plan", b"--planner"):
            yield [*command, option, name]
        yield [*command, b"--machine", b"./" + name]
        yield [*command, b"--machine", name + b".json"]
        yield [*command, b"--plan", name + b".json"]
        yield [*command, b"--memory", b"1" + name]
        yield [*command, b"--batch", b"i" + name, b"--planner", b"data", b"--sites", b"2"]
        yield [*command, b"--" + name]
        yield [*command, b"--" + name + b"=3"]
        yield [*command, name]
    for command in (run, einsum):
        for option in (b"--threads", b"--spill", b"--repeat", b"--timeout", b"--trace", b"--progress"):
            yield [*command, option, name]
        yield [*command, b"--sites", b"2", b"--memory", b"1GB", b"--spill", name]
        yield [*command, b"--sites", b"2", b"--trace", name + b"/t.json"]
        yield [*command, b"--sites", b"2", b"--trace", name]
    for command, out in ((run, b"Z="), (einsum, b"")):
        for path in (b"", b".npy", b".npz", b".npz:Z", b".safetensors:Z", b".idx", b"/z.npy", b".npy:Z"):
            yield [*command, b"--out", out + name + path]
        for archive in (b"z.npz:", b"z.safetensors:"):
            yield [*command, b"--out", out + archive + name]
    for option in (b"--dim", b"--scalar", b"--out", b"--in", b"--random"):
        yield [b"run", b"p.ein", option, name]
        yield [*run, option, name + b"=" + name]
        yield [*run, option, name + b"=1"]
        yield [*run, option, b"i=" + name]
        yield [*run, option, name + b"=1", option, name + b"=1"]
    yield [*run, b"--in", b"X=" + name]
    yield [*run, b"--in", b"X=x.npy", b"--in", b"W=" + name + b".npy"]
    yield [*run, b"--in", name + b".npz"]
    yield [*run, b"--in", name + b"=x.npy"]
    yield [*run, b"--in", b"X=two.npz:" + name]
    yield [*run, b"--in", b"X=two.safetensors:" + name]
    yield [*einsum, b"--join", name]
    yield [*einsum, b"--join", b"x*" + name]
    yield [*einsum, b"--reduce", name]
    yield [b"einsum", name, b"x.npy"]
    yield [b"einsum", b"ij->i" + name, b"x.npy"]
    yield [b"einsum", b"ij->i", name]
    yield [b"einsum", b"ij->i", b"two.npz:" + name]
    yield [*explain, b"--diff", name, b"data"]
    yield [*explain, b"--planner", b"data", b"--planner", name]
    yield [*explain, b"--planner", b"table-1", b"--planner", name]
    yield [*explain, b"--html", name]
    yield [*explain, b"--html", name + b"/p.html"]
    yield [b"explain", name + b".tra"]
    yield [b"explain", b"p.tra", b"--planner", name]
    yield [b"explain", b"p.tra", b"--sites", name]
    for command in (b"run", b"explain", b"check"):
        yield [command, name]
        yield [command, name + b".ein"]
        yield [command, b"p.ein", b"--in", b"X=" + name]
        yield [command, b"p.ein", b"--dim", name]
        yield [command, b"p.ein", b"--dim", name + b"=3"]
        yield [command, b"p.ein", b"--in", name + b"=x.npy"]
    yield [b"check", name + b".tra"]
    yield [b"run", name + b".tra"]
    yield [b"calibrate", b"--threads", name]
    yield [b"calibrate", b"--database", name]
    yield [b"calibrate", b"--database", b"sqlite:" + name]
    yield [b"calibrate", name]
    for words in ([], [b"list"], [b"list", b"functions"], [b"completion"], [b"manual"]):
        yield [*words, name]
        yield [*words, b"--" + name]


def of_environment(name):
    """Variables that are read, with a command that reads them."""
    sites = [b"run", b"p.ein", b"--random", b"1", b"--sites", b"2"]
    for variable in ("TMPDIR", "XDG_CONFIG_HOME", "HOME", "OMPI_COMM_WORLD_RANK"):
        for command in (sites, [b"explain", b"p.ein", b"--sites", b"2"], [*sites, b"--memory", b"1kB"]):
            yield command, {variable: name}


def of_contents(name):
    """Contents of files, with a command that reads them; the file's own name is FILE."""
    def einsum(*more):
        return [b"einsum", b"i->", b"FILE", *more]

    for descr in (b"'descr': '" + name + b"'", b"'" + name + b"': 3", name):
        yield "f.npy", npy_with(b"{" + descr + b", 'fortran_order': False, 'shape': (3,)}"), einsum()
    for member in (name, name + b".npy", b"../" + name + b".npy"):
        if len(member) < 60000:
            for extra in ([], [b"--sites", b"2"]):
                yield "f.npz", npz_with(member), einsum(*extra)
            yield "f.npz", npz_with(member), [b"einsum", b"i->", b"FILE:none"]
            yield "f.npz", npz_with(member), [b"einsum", b"i->", b"FILE:" + member.removesuffix(b".npy")]
            yield "f.npz", npz_with(member), [b"run", b"p.ein", b"--random", b"1", b"--in", b"FILE"]
            yield "f.npz", npz_with(member), [b"run", b"second.ein", b"--in", b"FILE"]
    for text in (name, in_json(name), escaped_in_json(name)):
        yield "f.safetensors", safetensors_with(text), einsum()
        yield "f.safetensors", safetensors_with(text), [b"einsum", b"i->", b"FILE:" + name]
        yield "f.safetensors", safetensors_with(b"w", dtype=text), [b"einsum", b"i->", b"FILE:w"]
        yield "f.safetensors", safetensors_with(b"w", field=text), einsum()
        yield "f.safetensors", safetensors_with(text), [b"run", b"second.ein", b"--in", b"FILE"]
        yield "f.json", MACHINE.replace(b'"m"', b'"' + text + b'"'), [b"explain", b"p.ein", b"--machine", b"./FILE"]
        yield "f.json", MACHINE.replace(b'"sites"', b'"' + text + b'"'), [b"explain", b"p.ein", b"--machine", b"./FILE"]
        yield "f.json", MACHINE.replace(b'"sites": 2', b'"sites": "' + text + b'"'), [b"explain", b"p.ein", b"--machine",
                                                                                    b"./FILE"]
        for plan in plans_with(text):
            yield "f.json", plan, [b"explain", b"p.ein", b"--plan", b"FILE"]
            yield "f.json", plan, [b"run", b"p.ein", b"--random", b"1", b"--plan", b"FILE"]
    for program in (name, b"input " + name, PROGRAM + b"Y[i] = X[i,j] * " + name + b"\n", b"# " + name + b"\n" + PROGRAM,
                    PROGRAM.replace(b"Z", name), PROGRAM + b"output " + name + b"\n",
                    b"def " + name + b"(a) = a\n" + PROGRAM):
        yield "f.ein", program, [b"check", b"FILE"]
        yield "f.ein", program, [b"explain", b"FILE", b"--sites", b"2", b"--json"]
        yield "f.ein", program, [b"run", b"FILE", b"--random", b"1", b"--progress", b"always"]
    for program in (name, TRA + name, TRA.replace(b"matAdd", name), TRA.replace(b"A", name), TRA.replace(b"join", name),
                    b"input " + name + b"[4]\n"):
        yield "f.tra", program, [b"explain", b"FILE"]


PLANS = []  # of p.ein, as explain --json writes it


def plans_with(text):
    """A sound plan with one of its words replaced."""
    for pattern in (rb'"planner": "()', rb'"name": "()Z', rb'"labels": \[\s*"()', rb'"parts": \{\s*"()', rb'"program": "()',
                    rb'"scatter": "()', rb'"()sites":'):
        for plan in PLANS:
            found = re.search(pattern, plan)
            if found:
                yield plan[:found.start(1)] + text + plan[found.start(1):]


class HostileNames(ProgramTest):
    def setUp(self):
        super().setUp()
        files = {"p.ein": PROGRAM, "p.tra": TRA, "second.ein": b"input second[i], third[i]\nZ[i] = second[i] + third[i]\n",
                 "x.npy": npy_bytes(np.ones((4, 3), np.float32)), "two.npz": npz_with(b"first.npy"),
                 "two.safetensors": safetensors_with(b"first")}
        for name, content in files.items():
            self.write(name, content)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_")}
        self.environment |= {"OPENBLAS_NUM_THREADS": "1", "XDG_CONFIG_HOME": os.devnull}

    def write(self, name, content):
        with open(os.path.join(os.fsencode(self.folder), os.fsencode(name)), "wb") as file:
            file.write(content)

    def call(self, arguments, folder=None, environment=()):
        return subprocess.run([einrel_process.PROGRAM, *arguments], cwd=folder or self.folder, timeout=100,
                              env={**self.environment, **dict(environment)}, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False)

    def faults_of(self, done):
        """What is wrong with what the program wrote; nothing should be."""
        faults = [] if done.returncode in (0, 1, 2) else [f"exit code {done.returncode}"]
        if done.returncode and not re.match(rb"(note: .*\n)*error: .+", done.stderr):
            faults.append("no message")
        for stream, written in (("out", done.stdout), ("err", done.stderr)):
            try:
                text = written.decode()
            except UnicodeDecodeError:
                faults.append(f"{stream} is no UTF-8")
                continue
            harmful = {character for character in text if unicodedata.category(character) in HARMFUL} - {"\n"}
            if harmful:
                faults.append(f"{stream} has {sorted(map(ascii, harmful))}")
            if re.search(b"^" + FORGED, written, re.MULTILINE):
                faults.append(f"{stream} has a line that a name forged")
        longest = max(map(len, done.stderr.split(b"\n")))
        if longest > MOST:
            faults.append(f"a line of {longest} bytes")
        return faults

    def expect_none(self, calls):
        """Of calls (what, arguments, folder, environment), as many at once as there are cores."""
        calls = list(calls)
        einrel_process.cases += len(calls)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda call: self.call(*call[1:]), calls))
        wrong = [f"{what}: {b' '.join(arguments)[:300]!r}: {faults}\n  {done.stderr[:400]!r} {done.stdout[:200]!r}"
                 for (what, arguments, *_), done in zip(calls, results) for faults in [self.faults_of(done)] if faults]
        if wrong:
            self.fail(f"{len(wrong)} of {len(calls)}\n" + "\n".join(wrong[:40]))

    def test_options(self):
        self.expect_none((what, arguments, None, ()) for what, name in NAMES.items() for arguments in of_options(name))

    def test_variables(self):
        self.expect_none((what, command, None, variables)
                         for what, name in NAMES.items() for command, variables in of_environment(name))

    def test_names_of_files(self):
        """Files that are there, in a folder and under a name that are hostile."""
        calls = []
        for number, (what, name) in enumerate(NAMES.items()):
            name = name[:200].replace(b"/", b"_")
            folder = os.path.join(os.fsencode(self.folder), b"%d" % number, name)
            os.makedirs(folder)
            for end, content in ((b".ein", PROGRAM), (b".tra", TRA), (b".npy", npy_bytes(np.ones(3, np.float32))),
                                 (b"bad.ein", b"dims i\n"), (b"bad.tra", b"input\n"), (b"bad.npy", b"PK"),
                                 (b".npz", npz_with(b"w.npy")), (b"bad.npz", b"PK"), (b".idx.gz", b"\x1f\x8b"),
                                 (b".safetensors", safetensors_with(b"w")), (b"bad.safetensors", b"123"), (b".json", MACHINE),
                                 (b"bad.json", b"{\n  nothing"), (b"none", b""), (b".idx", b"\0\0\x08\x01\0\0\0\x02")):
                self.write(os.path.join(folder, name + end), content)
            for path in (b"./" + name, os.path.join(folder, name)):
                for end in (b".npy", b"bad.npy", b".npz", b"bad.npz", b".npz:none", b".safetensors", b"bad.safetensors",
                            b".safetensors:none", b".idx", b".idx.gz", b"none", b""):
                    calls.append((what, [b"einsum", b"i->", path + end], folder, ()))
                for end in (b".ein", b"bad.ein", b".tra", b"bad.tra", b"none", b".json"):
                    for command in ([b"check"], [b"explain"], [b"run", b"--random", b"1"], [b"explain", b"--sites", b"2"],
                                    [b"explain", b"--json"], [b"explain", b"--sites", b"2", b"--json", b"--algebra"]):
                        calls.append((what, [command[0], path + end, *command[1:]], folder, ()))
                for end in (b".json", b"bad.json", b"none"):
                    for option in (b"--machine", b"--plan"):
                        calls.append((what, [b"explain", path + b".ein", option, path + end], folder, ()))
                run = [b"run", path + b".ein", b"--random", b"1"]
                for end in (b"out.npy", b"out.npz:Z", b"/", b"", b".npz:Z", b".ein"):
                    calls.append((what, [*run, b"--out", b"Z=" + path + end], folder, ()))
                    calls.append((what, [*run, b"--sites", b"2", b"--out", b"Z=" + path + end], folder, ()))
                calls += [(what, [*run, b"--sites", b"2", b"--trace", path + b".trace"], folder, ()),
                          (what, [*run, b"--sites", b"2", b"--json", b"--analyze"], folder, ()),
                          (what, [*run, b"--sites", b"2", b"--explain", b"--progress", b"always"], folder, ()),
                          (what, [*run, b"--in", path + b".npz"], folder, ()),
                          (what, [b"explain", path + b".ein", b"--html", path + b".html"], folder, ())]
        self.expect_none(calls)

    def test_what_is_written_for_other_programs(self):
        """JSON and HTML hold the name itself, escaped as their formats want it."""
        einrel_process.cases += 3 * len(NAMES)
        for what, name in NAMES.items():
            name = name[:200]
            program = name + b".ein"
            self.write(program, PROGRAM)
            with self.subTest(what):
                run = [b"run", b"./" + program, b"--random", b"1", b"--sites", b"2"]
                for arguments in ([b"explain", b"./" + program, b"--sites", b"2", b"--json"], [*run, b"--json"]):
                    done = self.call(arguments)
                    self.assertEqual((done.returncode, done.stderr), (0, b""))
                    self.assertEqual(json.loads(done.stdout)["program"], "./" + program.decode("utf-8", "replace"))
                self.assertEqual(self.call([*run, b"--trace", b"t.json"]).returncode, 0)
                with open(self.path("t.json"), encoding="utf-8") as file:
                    self.assertTrue(json.load(file)["traceEvents"])

    def test_contents_of_files(self):
        del PLANS[:]
        for planner in (b"eindecomp", b"data"):
            PLANS.append(self.call([b"explain", b"p.ein", b"--sites", b"2", b"--json", b"--planner", planner]).stdout)
        calls = []
        for what, name in NAMES.items():
            for file, content, arguments in of_contents(name):
                file = f"{len(calls)}{file}"
                self.write(file, content)
                calls.append((what, [word.replace(b"FILE", file.encode()) for word in arguments], None, ()))
        self.expect_none(calls)


if __name__ == "__main__":
    main()
