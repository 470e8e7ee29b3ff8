from __future__ import annotations

import unittest

from clc_tools import accuracy, accuracy_random, accuracy_waits, traces


def moved(events: int, near: int, far: int) -> dict[str, object]:
    classes = [
        {"up_to_percent": 0.1, "intervals": near},
        {"up_to_percent": 10, "intervals": far},
        {"up_to_percent": None, "intervals": far},
    ]
    return {"events": 100, "events_moved": events, "interval_change": {"classes": classes}}


def result(name: str, model: str, violations: int, error: float, moves: dict[str, object]) -> dict[str, object]:
    clock = {"rms_seconds": error}
    phases = [{"phase": "presync", "violations": violations, "clock": clock}, {"phase": "final", "clock": clock}]
    return {"name": name, "presync": model, "moves": moves, "phases": phases}


class Accuracy(unittest.TestCase):
    def test_shares_of_events_and_intervals(self) -> None:
        self.assertEqual(accuracy.shares(moved(20, 6, 1)), (20, 75))

    def test_goals_need_both_models_and_violations_and_a_reference(self) -> None:
        linear = result("sine", "linear", 200, 2e-5, moved(50, 1, 1))
        auto = result("sine", "auto", 2, 1e-6, moved(1, 1, 1))
        self.assertEqual(
            list(accuracy.goals([linear, auto])), [("sine", "20.0", "1.00 %", "2.00 %", "33.3 %", "3 of 4")]
        )
        self.assertEqual(list(accuracy.goals([linear])), [])
        self.assertEqual(list(accuracy.goals([result("sine", "linear", 0, 2e-5, moved(1, 1, 1)), auto])), [])
        everyone = f"sine, {accuracy.NO_REFERENCE}"
        self.assertEqual(list(accuracy.goals([{**linear, "name": everyone}, {**auto, "name": everyone}])), [])


class Random(unittest.TestCase):
    def test_a_scenario_follows_from_seed_and_number(self) -> None:
        first = accuracy_random.scenario(1, 17)
        self.assertEqual(first, accuracy_random.scenario(1, 17))
        self.assertNotEqual(first, accuracy_random.scenario(2, 17))

    def test_scenarios_can_be_simulated(self) -> None:
        for number in range(300):
            words = accuracy_random.scenario(1, number, everyone=True)
            options = dict(zip(words[::2], words[1::2]))
            self.assertIn(options["--pattern"], traces.PATTERNS)
            self.assertTrue(options["--clock"].startswith("all:"))
            if options["--pattern"] == "halo3d":
                self.assertGreaterEqual(int(options["--ranks"]), 8)

    def test_a_tenth_and_a_margin_make_a_difference(self) -> None:
        cases = {(1e-5, 1.2e-5): "worse", (1.2e-5, 1e-5): "better", (1e-5, 1.05e-5): "same", (0, 0.9e-7): "same"}
        self.assertEqual({errors: accuracy_random.verdict(*errors) for errors in cases}, cases)


class Waits(unittest.TestCase):
    def test_waiting_elsewhere_counts_twice(self) -> None:
        truth = {("late-sender", 0): 1.0, ("late-sender", 1): 3.0}
        self.assertEqual(accuracy_waits.error(truth, truth), 0)
        self.assertEqual(accuracy_waits.error({("late-sender", 1): 3.0, ("barrier", 0): 1.0}, truth), 50)


if __name__ == "__main__":
    unittest.main()
