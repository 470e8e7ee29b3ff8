from __future__ import annotations

import os
import stat
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from clc_tools import reports, runner


def given(**variables: str) -> mock._patch_dict:
    return mock.patch.dict(os.environ, variables)


class Programs(unittest.TestCase):
    def test_the_program_is_what_the_environment_names_or_what_was_built(self) -> None:
        with given(CLC_REPLAY=""):
            self.assertEqual(runner.program(), str(runner.ROOT / "target/release/clc-replay"))
        with given(CLC_REPLAY="target/debug/clc-replay"):
            self.assertEqual(runner.program(), str(Path.cwd() / "target/debug/clc-replay"))
        with given(CLC_REPLAY="sh"):
            self.assertTrue(Path(runner.program()).is_absolute())

    def test_the_launcher_that_is_given_may_have_options(self) -> None:
        with given(MPIEXEC="mpirun --quiet"):
            self.assertEqual(runner.launcher(), ["mpirun", "--quiet"])
        with given(MPIEXEC=""):
            self.assertEqual(runner.launcher(("no such launcher", "sh")), ["sh"])
            self.assertEqual(runner.launcher(("no such launcher",)), [])

    def test_no_ranks_need_no_launcher(self) -> None:
        self.assertEqual(runner.on_ranks(0), [])


class Runs(unittest.TestCase):
    def test_what_a_command_says_is_returned(self) -> None:
        self.assertEqual(runner.output(["echo", 1, Path("a")]), "1 a\n")

    def test_a_command_that_fails_tells_status_and_reason(self) -> None:
        with self.assertRaisesRegex(runner.CommandFailed, r"sh -c .*: exit status 3: why$") as caught:
            runner.output(["sh", "-c", "echo why >&2; exit 3"])
        self.assertEqual((caught.exception.status, caught.exception.said), (3, "why\n"))

    def test_the_program_runs_without_mpi_and_its_status_counts(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            script = Path(directory) / "program"
            script.write_text('#!/bin/sh\necho "$CLC_REPLAY_MPI $*"\nexit $1\n')
            script.chmod(script.stat().st_mode | stat.S_IXUSR)
            with given(CLC_REPLAY=str(script)):
                self.assertEqual(runner.alone(0, "x"), "never 0 x\n")
                self.assertEqual(runner.alone(1, status=(0, 1)), "never 1\n")
                with self.assertRaisesRegex(SystemExit, "clc-replay 1: exit status 1"):
                    runner.alone(1)


class Directories(unittest.TestCase):
    def test_scratch_goes_and_what_is_to_be_kept_stays(self) -> None:
        with runner.scratch(prefix="clc-test-") as directory:
            self.assertTrue(directory.name.startswith("clc-test-"))
            (directory / "sub").mkdir()
            (directory / "sub/a.raw").write_bytes(b"123")
            (directory / "b").write_bytes(b"12")
            self.assertEqual((runner.size_of(directory), runner.size_of(directory, ".raw")), (5, 3))
            with runner.scratch(directory / "kept") as kept:
                pass
            self.assertTrue(kept.is_dir())
        self.assertFalse(directory.exists())

    def test_reports_come_back_as_they_were_written(self) -> None:
        with runner.scratch() as directory:
            value = {"a": [0.1, None, "ü"]}
            reports.write(directory / "x.json", value)
            self.assertEqual(reports.read(directory / "x.json"), value)


if __name__ == "__main__":
    unittest.main()
