"""Two builds on a corpus: what counts as a difference."""

from __future__ import annotations

import unittest

from clc_tools.same_bytes import TIMES, Result, compare, without_times

RESULT = Result(0, "", {"traces.def": "1", "traces/0.evt": "2"}, {"verdict": "clean", "clocks": [{"drift": 1}]}, "page")


class SameBytes(unittest.TestCase):
    def test_everything_that_differs_is_named(self) -> None:
        self.assertEqual(list(compare(RESULT, RESULT)), [])
        other = Result(3, "said", {"traces.def": "1", "new": "3"}, {"verdict": "clean", "clocks": [{"drift": 2}]}, "")
        self.assertEqual(
            list(compare(RESULT, other)),
            [
                "exit status 0 became 3",
                "standard error '' became 'said'",
                "file new",
                "file traces/0.evt",
                "report.clocks[0].drift: 1 became 2",
                "page",
            ],
        )
        self.assertEqual(list(compare(RESULT, RESULT._replace(report=None)))[0][:8], "report: ")

    def test_time_and_memory_do_not_count(self) -> None:
        report = {"phases": [{"name": "scan", "seconds": 1.0}], "memory": {"largest_rank_bytes": 1}, "verdict": "clean"}
        self.assertEqual(without_times(report), {"verdict": "clean"})
        # An evaluation calls what it compares phases, too.
        evaluation = {"phases": [{"phase": "raw", "clock": {"rms_seconds": 1e-6}}]}
        self.assertEqual(without_times(evaluation), evaluation)
        page = "<p>x</p><table><caption>Time and memory on 1 rank</caption><td>1 s</td></table><table>y</table>"
        self.assertEqual(TIMES.sub("", page), "<p>x</p><table>y</table>")


if __name__ == "__main__":
    unittest.main()
