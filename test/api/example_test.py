#!/usr/bin/env python3
"""example_test BUILD EXAMPLE: installs Einrel, and builds and runs the example as a stranger's project would.

Its numbers are compared with plain loops; what is installed, with what may be.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, EXAMPLE = (Path(argument).resolve() for argument in sys.argv[1:3])
HEADERS = {"einrel.h", "database.h", "error.h", "expression.h", "input.h", "mapped_files.h", "planning.h",
           "program.h", "ranks.h", "tensor.h", "train.h"}
STRANGER = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH")}


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=STRANGER)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def data(rows, columns, seed):
    """As in main.cpp."""
    return [[(row * columns + column) * 5 + seed for column in range(columns)] for row in range(rows)]


def wrapped(matrix):
    return [[value % 9 - 4 for value in row] for row in matrix]


def numbers_after(words, text):
    return [float(word) for word in re.search(re.escape(words) + r"(.*)", text)[1].split()]


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = Path(cls.folder.name) / "prefix"
        cls.project = Path(cls.folder.name) / "project"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        run("cmake", "-G", "Ninja", "-S", EXAMPLE, "-B", cls.project, f"-DCMAKE_PREFIX_PATH={cls.prefix}",
            "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror")
        run("cmake", "--build", cls.project)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_example_computes_what_loops_do(self):
        x, w = wrapped(data(6, 8, 1)), wrapped(data(8, 3, 2))
        scores = [[sum(x[b][f] * w[f][l] for f in range(8)) for l in range(3)] for b in range(6)]
        said = run(self.project / "classify")
        self.assertEqual(numbers_after("scores:", said), [score for row in scores for score in row])
        self.assertEqual(numbers_after("classes:", said), [row.index(max(row)) for row in scores])
        self.assertEqual(numbers_after("numpy.einsum's notation:", said), [max(row) for row in x])
        self.assertIn("by the plan of eindecomp for 4 sites", said)
        self.assertRegex(said, r"plan +by eindecomp for 4 sites")
        self.assertIn("S[b,l] = sum[f] X[b,f] * W[f,l]", said)
        self.assertRegex(said, r"error: label 'f' has extent 8 in X\[b,f\].* but 6 in W\[f,l\]")

    def test_only_the_interface_is_installed(self):
        files = {path.relative_to(self.prefix) for path in self.prefix.rglob("*") if not path.is_dir()}
        self.assertEqual({path.name for path in files if path.parts[0] == "include"}, HEADERS)
        self.assertTrue(all(path.parts[0] in ("include", "lib", "bin", "share") for path in files), files)
        self.assertFalse([path for path in files if path.suffix == ".a"])

    def test_the_command_is_installed(self):
        self.assertRegex(run(self.prefix / "bin" / "einrel", "--version"), r"^einrel \d")

    def test_the_command_describes_all_its_options(self):
        einrel = self.prefix / "bin" / "einrel"
        manual = (self.prefix / "share/man/man1/einrel.1").read_text(encoding="utf-8").replace("\\-", "-")
        completion = self.prefix / "share/bash-completion/completions/einrel"
        commands = re.findall(r"(?m)^  ([a-z]+) ", run(einrel, "--help").split("Subcommands:")[1])
        self.assertIn("einsum", commands)
        for command in commands:
            options = set(re.findall(r"(?m)^  (?:-h,)?(--[a-z-]+)", run(einrel, command, "--help")))
            section = re.search(rf"(?s)\.SS \\&einrel {command}\b.*?(?=\.SS|\.SH)", manual)[0]
            self.assertEqual(set(re.findall(r"(?m)^\.B \\&(--[a-z-]+)", section)), options)
            typed = f"source {completion}; COMP_WORDS=(einrel {command} --); COMP_CWORD=2; _einrel; echo ${{COMPREPLY[@]}}"
            self.assertEqual(set(run("bash", "-c", typed).split()), options)
        typed = f"source {completion}; COMP_WORDS=(einrel e); COMP_CWORD=1; _einrel; echo ${{COMPREPLY[@]}}"
        self.assertEqual(set(run("bash", "-c", typed).split()), {"explain", "einsum"})

    def test_headers_use_the_standard_library_and_themselves_only(self):
        include = self.prefix / "include"
        for header in (include / "einrel").glob("*.h"):
            text = header.read_text(encoding="utf-8")
            self.assertNotRegex(text, r"(?m)^\s*#\s*(define|if)", f"{header.name} has a macro")
            for name in re.findall(r"#include <([^>]+)>", text):
                self.assertTrue(name.startswith("einrel/") or re.fullmatch(r"[a-z_]+", name), f"{header.name}: {name}")
            source = Path(self.folder.name) / "alone.cpp"
            source.write_text(f"#include <einrel/{header.name}>\n" * 2, encoding="utf-8")
            run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{include}", source)

    def test_every_name_of_the_headers_is_listed(self):
        declared = set()
        for header in (self.prefix / "include" / "einrel").glob("*.h"):
            text = header.read_text(encoding="utf-8")
            if header.name == "einrel.h":
                listed = set(re.findall(r"(?m)^using api::(\w+);$", text))
                self.assertIn("\nusing namespace api::functions;\n", text)
                continue
            text = re.sub(r"(?s)\ninline namespace functions {.*?\n}  // namespace functions", "", text)
            declared |= set(re.findall(r"(?m)^(?:class|struct|enum class|concept|using) (\w+)", text))
            declared |= set(re.findall(r"(?m)^(?!template|//)[\w:<>]+(?: \w+)* (\w+)\(", text))
        self.assertGreater(len(declared), 40)
        self.assertEqual(declared, listed)

    def test_other_versions_are_refused(self):
        asked = Path(self.folder.name) / "asked"
        asked.mkdir(exist_ok=True)
        (asked / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(asked LANGUAGES CXX)\n"
                                              "find_package(einrel 0.2 REQUIRED)\n", encoding="utf-8")
        with self.assertRaisesRegex(AssertionError, "einrel"):
            run("cmake", "-G", "Ninja", "-S", asked, "-B", asked / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
