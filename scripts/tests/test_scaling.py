from __future__ import annotations

import unittest

from clc_tools import reports
from clc_tools.scaling import model, tables
from clc_tools.scaling.command import MEASURED


class Model(unittest.TestCase):
    def setUp(self) -> None:
        self.measured = reports.read(MEASURED)
        self.costs = model.Costs(self.measured)

    def test_rounds_of_a_tree(self) -> None:
        self.assertEqual([model.log2(n) for n in (1, 2, 3, 4, 1000)], [1, 1, 2, 2, 10])

    def test_neighbours_of_a_halo_exchange(self) -> None:
        # 3 x 3: four at the corners have two, four at the sides three, one four.
        self.assertEqual(model.grid(9), (3, 4 * 2 + 4 * 3 + 4, 4))
        self.assertEqual(model.grid(2), (2, 2, 1))

    def test_one_rank_talks_to_nobody(self) -> None:
        run = next(run for run in self.measured["model"]["runs"] if run["pattern"] == "halo2d" and run["ranks"] == 1)
        predicted = model.Here(self.measured, self.costs).predict(run)
        spent = run["events"] * self.costs.kinds["halo2d"]["scan"] + run["processes"] * self.costs.process["scan"]
        self.assertAlmostEqual(predicted["scan"], spent)

    def test_more_ranks_of_equal_size_are_never_quicker(self) -> None:
        cluster = model.Cluster(self.measured, self.costs)
        sums = [tables.total(cluster.predict(ranks)) for ranks in tables.SCALES]
        self.assertEqual(sums, sorted(sums))

    def test_each_change_is_worth_something_at_the_largest_scale(self) -> None:
        cluster, changes = model.Cluster(self.measured, self.costs), list(model.CHANGES)
        sums = [tables.total(cluster.predict(10**6, changes[:made])) for made in range(len(changes) + 1)]
        self.assertEqual(sums, sorted(sums, reverse=True))


if __name__ == "__main__":
    unittest.main()
