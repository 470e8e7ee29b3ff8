from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from clc_tools import reports
from clc_tools.bench import command, decoding, drawings, results, session
from clc_tools.runner import ROOT


def correction(wall: float, seconds: float) -> session.Correction:
    phases = [
        {"name": "check", "seconds": seconds, "events_per_second": 40 / seconds},
        {"name": "forward", "seconds": 3 * seconds, "events_per_second": 1},
        {"name": "details", "seconds": 100, "events_per_second": 1},
    ]
    report = {
        "phases": phases,
        "memory": {"largest_rank_bytes": 7},
        "trace": {"events": 100, "processes": 4},
        "matching": {"messages": 20},
        "violations": {"presynchronised": {"point_to_point": {"checked": 20, "violated": 5}}},
        "replay": {"passes": [{}, {}]},
    }
    return session.Correction(wall, wall, 0, 5, report, {})


class Session(unittest.TestCase):
    def test_medians_are_of_each_figure(self) -> None:
        found = session.medians([correction(3, 1), correction(1, 2), correction(2, 4)])
        self.assertEqual((found["runs"], found["wall"], found["walls"]), (3, 2, [3, 1, 2]))
        self.assertEqual((found["phases"]["check"], found["shared"], found["shareds"]), (2, 8, [4, 8, 16]))
        self.assertEqual([found[key] for key in ("events", "visited", "passes", "violated")], [100, 40, 2, 5])

    def test_a_run_without_a_report_has_times_only(self) -> None:
        found = session.medians([session.Run(1, 1, 0, 5)])
        self.assertEqual(set(found), {"runs", "walls", "wall", "user", "system", "memory"})

    def test_the_first_replay_carries_a_clock_more(self) -> None:
        run = {"phases": {"forward": 6.0}, "visited": 2}
        self.assertEqual(session.forward_per_visit({**run, "passes": 2}), 1)
        self.assertEqual(session.forward_per_visit({**run, "passes": 0}), 3)

    def test_runs_take_turns(self) -> None:
        order: list[str] = []
        session.Session.in_turn({name: lambda name=name: order.append(name) for name in "ab"}, 2)  # type: ignore[misc]
        self.assertEqual(order, ["a", "b", "a", "b"])


class Results(unittest.TestCase):
    def test_verdicts(self) -> None:
        row = results.Row("what", "1 s", (("2 s", True), ("0.5 s", False), ("works", None)))
        self.assertEqual(row.verdicts(), "2 s: met; 0.5 s: missed; works")
        self.assertTrue(row.missed())
        self.assertFalse(results.Row("what", "1 s", (("works", None),)).missed())

    def test_growth_per_doubling_leaves_out_what_is_mostly_start_up(self) -> None:
        points = [{"wall": wall, "events": events} for wall, events in ((0.01, 1), (0.1, 2), (0.2, 4), (1.8, 16))]
        self.assertEqual([round(step, 6) for step in results.per_doubling(points)], [2, 3])

    def test_events_per_process_are_told_with_two_digits(self) -> None:
        self.assertEqual(results.each({"events": 8 * 1_000_012, "processes": 8}), "1,000,000")

    def test_parts_that_were_not_measured_have_no_rows(self) -> None:
        self.assertEqual(results.results({}), [])

    def test_every_part_of_the_page_is_one_that_can_be_measured(self) -> None:
        self.assertLessEqual({part for part, _ in results.ROWS if part}, set(command.PARTS))
        self.assertLessEqual(set(drawings.PLOTS), set(command.PARTS))
        measured = reports.read(ROOT / "docs/performance/measured.json")
        self.assertLessEqual(set(measured["figures"]), set(command.PARTS))


class Decoding(unittest.TestCase):
    HEADERS = """
    typedef OTF2_CallbackCode ( *OTF2_EvtReaderCallback_Enter )( OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t eventPosition,
        void* userData, OTF2_AttributeList* attributeList, OTF2_RegionRef region );
    typedef OTF2_CallbackCode ( *OTF2_EvtReaderCallback_Metric )( OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t eventPosition,
        void* userData, OTF2_AttributeList* attributeList, OTF2_MetricRef metric, uint8_t numberOfMetrics, const OTF2_Type* typeIDs );
    """

    def test_every_callback_takes_all_its_fields(self) -> None:
        made = decoding.callbacks(self.HEADERS)
        self.assertIn("event_counts[2];", made)
        self.assertIn("event_counts[0]++; sum_of_times += time; taken = (uint64_t)region;", made)
        self.assertIn("taken = (uint64_t)metric + (uint64_t)numberOfMetrics + (typeIDs != NULL", made)
        self.assertIn("OTF2_EvtReaderCallbacks_SetMetricCallback(callbacks, on_Metric);", made)

    def test_headers_without_callbacks_are_an_error(self) -> None:
        with self.assertRaises(ValueError):
            decoding.callbacks("int main(void);")

    def test_names_as_otf2_print_has_them(self) -> None:
        names = {"Enter": "ENTER", "MpiIsendComplete": "MPI_ISEND_COMPLETE"}
        self.assertEqual({name: decoding.in_capitals(name) for name in names}, names)

    def test_all_have_to_read_the_same_events(self) -> None:
        ours = {"Enter": 3, "MpiSend": 1, "times": 70}
        self.assertEqual(decoding.same_events({"clc-otf2": ours}), 4)
        theirs = {"clc-otf2": ours, "libotf2": dict(ours), "otf2-print": {"ENTER": 3, "MPI_SEND": 1}}
        self.assertEqual(decoding.same_events(theirs), 4)
        for other, wrong in (("libotf2", {**ours, "times": 71}), ("otf2-print", {"ENTER": 4})):
            with self.assertRaises(SystemExit):
                decoding.same_events({**theirs, other: wrong})


class Store(unittest.TestCase):
    def test_other_parts_stay(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "measured.json"
            for name, figures in (("b", 1), ("a", 2), ("b", 3)):
                command.store(file, name, figures, {"cores": figures})
            expected = {"machines": {"a": {"cores": 2}, "b": {"cores": 3}}, "figures": {"a": 2, "b": 3}}
            self.assertEqual(reports.read(file), expected)


if __name__ == "__main__":
    unittest.main()
