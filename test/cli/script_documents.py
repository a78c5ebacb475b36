"""The scripts that einrel sql prints of the documents of test/lang, run by a database alone: what holds in every one.

What a script makes is compared with einrel run, and with the numbers that the document says. A test of a database has
self.dialect, self.failure (what a statement that fails raises), and self.made(inputs, script, tables), which runs the script
in an empty database with these inputs (name: labels, type, array) and gives the rows of the tables, by name. `in_chunks` and
`in_elements` say of which documents this database cannot have what a script needs or makes, by words of what is said then.
"""

import json
import os
import re
import sys

import numpy as np

from einrel_process import einrel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lang"))

import documents  # noqa: E402

NOT_IN_PLAIN_SQL = {"13_functions": "no erf", "14_accurate_functions": "no erf", "30_casts": "no floats that narrow",
                    "34_integers_wrap": "powers of whole numbers", "38_numbers_alone": "powers of whole numbers", "39_narrow_casts": "no floats that narrow",
                    "3a_statements_round_once": "no floats that narrow",
                    "90_inverse": "no linear algebra", "90_qr": "no linear algebra", "91_random_numbers": "random numbers", "92_gathers": "does not check an index",
                    "94_complex": "does not check an index",
                    "97_gradients_of_reads": "no linear algebra", "98_gradients_of_gathers": "does not check an index",
                    "error_gather_negative": "does not check an index", "error_gather_outside": "does not check an index"}


def file_array(array, info):
    """As files hold it: bf16 are the upper halves of f32."""
    if info.is_complex:
        return array[..., 0] + 1j * array[..., 1]
    return (array.view("<u4") >> 16).astype("<u2").view("V2") if info.dtype == "bf16" else array


def array_of(path):
    array = np.load(path)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], -1)
    dtype = "bf16" if array.dtype.kind == "V" else {np.dtype(kind): name for name, kind in documents.TYPES.items() if name != "bf16"}[array.dtype]
    return dtype, (array.view("<u2").astype("<u4") << 16).view("<f4") if dtype == "bf16" else array


class ScriptsOfDocuments:
    ways = ("", "tile-2", "element")  # formats; "": as it costs least
    place = ()  # how a script is told where tables are

    def options(self, document):
        """How the command is told the extents and scalars."""
        given = [("--dim", f"{label}={extent}") for label, extent in document.dims().items()]
        given += [("--scalar", f"{name}={value}") for name, value in document.assignments("scalar").items()]
        return [word for option in given for word in option]

    def results(self, document, arrays):
        """What einrel run computes, by output: the type and an array."""
        run = ["run", document.path, *self.options(document)]
        for name, info in document.inputs().items():
            np.save(self.path(f"in {name}.npy"), file_array(arrays[name], info))
            run += ["--in", f"{name}={self.path(f'in {name}.npy')}"]
        if document.failure:
            self.refuse(2, *run, mentions=document.failure)
            return {}
        names = [line.split()[0] for line in self.succeed(*run).out.splitlines()]
        self.succeed(*run, *(word for name in names for word in ("--out", f"{name}={self.path(f'out {name}.npy')}")), "--overwrite")
        return {name: array_of(self.path(f"out {name}.npy")) for name in names}

    def broken(self, document, arrays, wanted, script):
        """What is not as it should be, in words; "" where all is."""
        inputs = {name: (info.labels, info.dtype, arrays[name]) for name, info in document.inputs().items()}
        try:
            rows = self.made(inputs, script, list(wanted))
        except self.failure as error:
            return str(error)
        said = [documents.difference(name, dtype, rows[name], array, document.tolerances().get(name)) for name, (dtype, array) in wanted.items()]
        for name, (numbers, tolerance) in document.literals("expect").items():
            if name in wanted:
                dtype, array = wanted[name]
                said.append(documents.difference(name, dtype, rows[name], np.array(numbers, array.dtype), tolerance))
        return "; ".join(words for words in said if words)

    def expect_comments(self, script, about_tensors):
        """Above each statement that makes a table stands what for; `about_tensors` are words of what is said of each tensor."""
        begin, *statements, end = script.split("\n\n")
        self.assertEqual((begin, end), ("BEGIN;", "COMMIT;\n"))
        remarks = []
        for statement in statements:
            is_remarked = statement.startswith("-- ")
            self.assertTrue(is_remarked or not re.match("CREATE (TEMPORARY )?TABLE", statement), statement)
            self.assertTrue(statement.endswith(";"), statement)
            if is_remarked:
                remark, _, text = statement.partition("\n")
                self.assertTrue(text.startswith(("CREATE ", "SET LOCAL ")), statement)
                remarks.append(remark)
        for words in about_tensors:
            found = [remark for remark in remarks if all(word in remark for word in words)]
            self.assertTrue(found, (words, script))

    def remarks(self, document, formats):
        """What has to be said of each tensor that is computed: how, and in which format."""
        arguments = () if formats in ("", "element") else ("--formats", formats)
        explained = json.loads(self.succeed("sql", document.path, *self.options(document), "--dialect", self.dialect, *arguments, "--explain", "--json").out)
        for tensor in explained["tensors"]:
            chosen = {"element": "; element", "tile-2": "(chunks of at most 2 along each dimension)"}.get(formats, f"({tensor['format']}")
            if not tensor["formula"].startswith("input "):
                yield f"-- {tensor['formula']}; ", chosen

    def expect_script(self, document, formats, why, arrays, wanted):
        """What is printed with these formats makes what is wanted, or `why` is said."""
        arguments = ("--formats", formats) if formats else ()
        printed = einrel("sql", document.path, *self.options(document), "--dialect", self.dialect, *self.place, *arguments)
        if printed.code != 0:
            self.assertEqual((printed.code, printed.out), (1, ""), printed)
            self.assertTrue(why and why in printed.err, printed)
            return
        self.expect_comments(printed.out, self.remarks(document, formats))
        broken = self.broken(document, arrays, wanted, printed.out)
        words = [why] if why else document.failure
        self.assertEqual([word for word in words if word not in broken], [], broken)
        self.assertTrue(words or not broken, broken)

    def test_scripts_of_every_document_make_what_a_run_gives(self):
        plain = {**NOT_IN_PLAIN_SQL, **self.in_elements}
        known = documents.stateless()
        self.assertGreater(len(known), 60)
        self.assertLessEqual({*self.in_chunks, *plain}, {document.name for document in known})
        for document in known:
            arrays = document.arrays()
            wanted = self.results(document, arrays)
            for formats in self.ways:
                with self.subTest(document=document.name, formats=formats):
                    exceptions = plain if formats == "element" else self.in_chunks
                    self.expect_script(document, formats, exceptions.get(document.name), arrays, wanted)

    def test_programs_with_state_have_none(self):
        program = self.text_file("state.ein", "state x[] = 1.0\nnext x[] = 2 * x[]\noutput next_x\n")
        self.refuse(1, "sql", program, "--dialect", self.dialect, mentions=["state"])
