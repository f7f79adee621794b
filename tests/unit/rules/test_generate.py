#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""rules/generate.py stops the build, with the place, at data that it cannot read or that has gone missing.

    test_generate.py FOLDER
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER = sys.argv.pop(1)


class Generate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in os.listdir(FOLDER):
            if name.endswith((".txt", ".csv")):
                shutil.copy(os.path.join(FOLDER, name), self.folder)

    def run_it(self):
        output = os.path.join(self.folder, "out.c")
        command = [sys.executable, os.path.join(FOLDER, "generate.py"), self.folder, output]
        return subprocess.run(command, capture_output=True, text=True), output

    def refuses(self, name, line, where):
        path = os.path.join(self.folder, name)
        with open(path, encoding="utf-8") as file:
            number = len(file.readlines()) + 1
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
        result, output = self.run_it()
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(where.replace("N", str(number)), result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        self.assertFalse(os.path.exists(output))

    def test_data_as_it_is(self):
        result, output = self.run_it()
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(output, encoding="utf-8") as file:
            self.assertIn("builtin_floor", file.read())

    def test_no_source(self):
        self.refuses("floor.txt", "floor 10.0.0.1", "floor.txt:N:")

    def test_host_bits(self):
        self.refuses("floor.txt", "floor 10.0.0.1/8 | x | y", "floor.txt:N:")

    def test_unknown_kind(self):
        self.refuses("floor.txt", "flor 10.0.0.1 | x | y", "floor.txt:N:")

    def test_port_out_of_range(self):
        self.refuses("floor.txt", "floor 10.0.0.1 tcp 65536 | x | y", "floor.txt:N:")

    def test_port_no_number(self):
        self.refuses("floor.txt", "floor 10.0.0.1 tcp http | x | y", "floor.txt:N:")

    def test_name_not_canonical(self):
        self.refuses("floor.txt", "name Metadata.Goog | x | y", "floor.txt:N:")

    def test_name_twice(self):
        self.refuses("special-names.txt", "private lan | y", "line N")

    def test_name_in_two_files(self):
        self.refuses("encrypted-dns.txt", "provider lan | y", "line N")

    def test_class_unknown(self):
        self.refuses("address-classes.txt", "public 10.0.0.0/8 | x | y", "address-classes.txt:N:")

    def test_registry_columns(self):
        self.refuses("iana-ipv4-special.csv", "198.18.0.0/15,x,y", "iana-ipv4-special.csv:N:")

    def test_empty_floor(self):
        with open(os.path.join(self.folder, "floor.txt"), "w", encoding="utf-8") as file:
            file.write("# nothing\n")
        result, output = self.run_it()
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("only 0 floor", result.stderr)
        self.assertFalse(os.path.exists(output))


if __name__ == "__main__":
    unittest.main()
