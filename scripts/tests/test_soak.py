from __future__ import annotations

import unittest

from clc_tools.soak import attempt, command
from clc_tools.soak.draw import FEWEST, Draw, Library

LIBRARIES = {
    "openmpi": Library(("mpirun", "-n"), "/a/clc-replay"),
    "mpich": Library(("mpiexec", "-n"), "/b/clc-replay"),
}


def options(**changed: object) -> attempt.Options:
    usual: dict[str, object] = {
        "count": None, "seed": 7, "jobs": 1, "short": False, "only": None, "keep": None, "show": False, "mpi": "openmpi,mpich",
        "limit": 300.0, "judge": 4, "json": None, "verbose": False,
    }  # fmt: skip
    return attempt.Options(**{**usual, **changed})  # type: ignore[arg-type]


class Drawn(unittest.TestCase):
    def test_commands_follow_from_seed_and_number(self) -> None:
        drawn = [Draw(1, 5, list(LIBRARIES), False).commands(LIBRARIES) for _ in range(2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], Draw(2, 5, list(LIBRARIES), False).commands(LIBRARIES))

    def test_traces_can_be_simulated_and_launched(self) -> None:
        for number in range(300):
            draw = Draw(1, number, list(LIBRARIES), number % 2 == 0)
            commands = draw.commands(LIBRARIES)
            self.assertGreaterEqual(draw.ranks, FEWEST.get(str(draw.simulation["pattern"]), 2))
            self.assertTrue(1 <= draw.analysis <= 16)
            library = LIBRARIES[draw.library]
            start = [*library.launch, str(draw.analysis), library.program]
            self.assertEqual(commands["correct"][: len(start)], start)

    def test_models_that_estimate_nothing_get_no_options_for_it(self) -> None:
        for number in range(300):
            drawn = Draw(3, number, list(LIBRARIES), False).synchronisation
            if drawn["presync"] in ("linear", "none"):
                self.assertFalse({"reference", "confidence", "segment", "max-delay"} & set(drawn))


class Judged(unittest.TestCase):
    def test_picoseconds_are_no_more_than_the_ticks(self) -> None:
        for resolution in (10**6, 10**9, 10**12, 1_992_000_000):
            for ticks in (0, 1, 7, 1000):
                picoseconds = attempt.picoseconds(ticks, resolution)
                self.assertEqual(-(-picoseconds * resolution // 10**12), ticks)

    def test_violations_of_messages_and_collectives_add_up(self) -> None:
        stage = {"point_to_point": {"violated": 2}, "collectives": [{"violated": 3}, {"violated": 4}]}
        self.assertEqual(attempt.violated(stage), 9)

    def test_far_is_ten_times_the_larger_error_before(self) -> None:
        def far(raw: float | None, presync: float, final: float) -> bool:
            return command.is_far({"errors": {"raw": raw, "presync": presync, "final": final}})

        self.assertTrue(far(1e-3, 1e-4, 2e-2))
        self.assertFalse(far(1e-3, 1e-4, 9e-3))
        self.assertFalse(far(None, 1e-4, 1))

    def test_the_command_that_repeats_a_trace(self) -> None:
        self.assertEqual(command.again(3, options()), "scripts/soak --seed 7 --only 3 --keep DIR")
        changed = options(short=True, mpi="mpich")
        self.assertEqual(command.again(3, changed), "scripts/soak --seed 7 --only 3 --keep DIR --short --mpi mpich")

    def test_how_many_traces(self) -> None:
        chosen = (options(), options(short=True), options(count=5), options(only=[9]))
        self.assertEqual([len(command.numbers(one)) for one in chosen], [1000, 30, 5, 1])


if __name__ == "__main__":
    unittest.main()
