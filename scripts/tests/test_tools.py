from __future__ import annotations

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from clc_tools import clock_offsets, demo_page, licences, nodes, round_trips, slowest_tests
from clc_tools.round_trips import Sample


class SlowestTests(unittest.TestCase):
    REPORT = """<?xml version="1.0"?><testsuites name="n"><testsuite name="clc-replay::program">
        <testcase name="a::quick" classname="clc-replay::program" time="0.1"/>
        <testcase name="b::slow" classname="clc-replay::program" time="41.26"/></testsuite></testsuites>"""

    def test_the_slowest_come_first(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            report = Path(directory) / "mpich.xml"
            report.write_text(self.REPORT)
            lines = slowest_tests.slowest(slowest_tests.tests(report) * 10)
        self.assertEqual(lines[0], "20 tests, 414 s one after the other; the slowest:")
        self.assertEqual(lines[1:], ["    41.3 s  clc-replay::program b::slow (mpich)"] * slowest_tests.SHOWN)

    def test_what_is_no_report_is_an_error(self) -> None:
        with tempfile.TemporaryDirectory() as directory, self.assertRaises(SystemExit):
            slowest_tests.tests(Path(directory) / "missing.xml")


class Licences(unittest.TestCase):
    def test_expressions(self) -> None:
        cases = {
            "MIT": True,
            "MIT/Apache-2.0": True,
            "GPL-3.0-only": False,
            "GPL-3.0-only OR MIT": True,
            "GPL-3.0-only AND MIT": False,
            "(MIT OR GPL-2.0-only) AND ISC": True,
            "(MIT OR GPL-2.0-only AND ISC": False,
            "MIT ISC": False,
            "Apache-2.0 WITH LLVM-exception": True,
            "GPL-2.0-only WITH X": False,
            "": False,
        }
        self.assertEqual({text: licences.allowed(text, licences.ALLOWED) for text in cases}, cases)

    def test_crates_of_our_own_and_those_of_others_need_no_explanation(self) -> None:
        registry = "registry+https://example.org"
        packages = [
            {"id": "a", "dependencies": [{"name": "serde", "source": registry}, {"name": "b", "source": None}]},
            {"id": "b", "dependencies": [{"name": "libc", "source": registry}]},
            {"id": "serde", "dependencies": [{"name": "itoa", "source": registry}]},
        ]
        metadata = {"workspace_members": ["a", "b"], "packages": packages}
        self.assertEqual(licences.direct(metadata), {"serde", "libc"})

    def test_an_exception_counts_for_its_crate_and_has_to_be_needed(self) -> None:
        excepted = {("libfuzzer-sys", "0.4"): "(MIT OR Apache-2.0) AND NCSA"}
        self.assertEqual(licences.judged({**excepted, ("a", "1"): "MIT"}), [])
        self.assertEqual(licences.judged({**excepted, ("a", "1"): "NCSA"}), ["a 1 has the licence 'NCSA'"])
        self.assertEqual(licences.judged({**excepted, ("a", "1"): ""}), ["a 1 has the licence 'none'"])
        self.assertEqual(licences.judged({}), ["the exception for libfuzzer-sys is not needed any more"])


class Nodes(unittest.TestCase):
    def test_options_end_at_the_command(self) -> None:
        wanted = nodes.arguments(["3", "--slots", "2", "--", "run", "--verbose", "--", "7"])
        self.assertEqual(wanted, nodes.Wanted(3, 2, False, ["run", "--verbose", "--", "7"]))

    def test_wrong_usage_has_a_status_of_its_own(self) -> None:
        for line in ("", "2", "2 --", "-- x", "0 -- x", "2 3 -- x", "2 --slots -- x"):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as caught:
                nodes.arguments(line.split())
            self.assertEqual(caught.exception.code, 2, line)

    def test_signals_as_shells_tell_them(self) -> None:
        self.assertEqual([nodes.as_in_shells(status) for status in (0, 7, -9)], [0, 7, 137])


class RoundTrips(unittest.TestCase):
    def test_a_line_is_found_again(self) -> None:
        intercept, slope = round_trips.line(
            [Sample(t, 5 + 0.25 * t, weight) for t, weight in ((0, 1), (8, 3), (40, 1))]
        )
        self.assertAlmostEqual(intercept, 5)
        self.assertAlmostEqual(slope, 0.25)

    def test_what_weighs_nothing_does_not_count(self) -> None:
        samples = [Sample(0, 0), Sample(10, 10), Sample(5, 1000, 0)]
        self.assertEqual([round(value, 9) for value in round_trips.line(samples)], [0, 1])

    def test_an_answer_is_sent_after_the_message_has_arrived(self) -> None:
        # The clock of the other is 100 ahead; a message takes 10.
        there, back = [(0, 110), (50, 160)], [(105, 15), (120, 30), (170, 80)]
        trips = round_trips.consecutive(there, back)
        self.assertEqual([(trip.time, trip.offset, trip.half) for trip in trips], [(15, 100, 10), (65, 100, 10)])

    def test_the_slowest_tenth_is_dropped(self) -> None:
        trips = [Sample(0, 0, 1, half) for half in range(20, 0, -1)]
        self.assertEqual([trip.half for trip in round_trips.confident(trips)], list(range(1, 19)))


class Others(unittest.TestCase):
    def test_offsets_of_a_listing(self) -> None:
        said = "CLOCK_OFFSET        3  Time: 12, Offset: -40, StdDev: 1.5e+01\nENTER 3 12\n"
        self.assertEqual(clock_offsets.OFFSET.findall(said), [("12", "-40", "1.5e+01")])
        offsets = [clock_offsets.Offset("1", error, 10.0) for error in (-3, 1, 2)]
        name, count, median, most, worst, share = clock_offsets.summary(clock_offsets.Case("x", 0, 2), offsets)
        self.assertEqual((name, count, median, most, worst, share), ("x", 3, 2, 3, 3, "17%"))

    def test_the_page_of_the_demonstration(self) -> None:
        made = demo_page.page('<?xml version="1.0"?>\n<svg>1</svg>', "<svg>2</svg>", "a < b")
        self.assertIn("<h2>As recorded</h2>\n<svg>1</svg>\n", made)
        self.assertIn("<pre>a &lt; b</pre>", made)
        self.assertNotIn("<?xml", made)


if __name__ == "__main__":
    unittest.main()
