"""The files in scripts/ that others start: each finds its module, whatever the current directory is."""

from __future__ import annotations

import os
import subprocess
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1]
WITHOUT_OPTIONS = {"round_trips", "demo_page.py"}


class EntryPoints(unittest.TestCase):
    def test_all_of_them_are_thin(self) -> None:
        found = {path.name: path.read_text(encoding="utf-8") for path in SCRIPTS.iterdir() if path.is_file()}
        entries = {name: text for name, text in found.items() if text.startswith("#!/usr/bin/python3")}
        self.assertGreaterEqual(
            set(entries), {"accuracy", "bench", "licences", "nodes", "scaling", "soak", "structure", *WITHOUT_OPTIONS}
        )
        for name, text in entries.items():
            self.assertLess(len(text.splitlines()), 12, name)
            self.assertTrue(os.access(SCRIPTS / name, os.X_OK), name)
            with self.subTest(name):
                # One without options is imported only.
                command = [str(SCRIPTS / name), "--help"]
                if name in WITHOUT_OPTIONS:
                    module = f"clc_tools.{name.removesuffix('.py')}"
                    command = ["/usr/bin/python3", "-B", "-c", f"from {module} import main"]
                place = SCRIPTS if name in WITHOUT_OPTIONS else Path("/")
                done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
