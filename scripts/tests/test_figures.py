from __future__ import annotations

import unittest

from clc_tools import figures


class Times(unittest.TestCase):
    def test_three_digits_with_zeros(self) -> None:
        cases = {0: "0", 1.2e-9: "1.20 ns", 12e-6: "12.0 us", 0.12: "120 ms", 5: "5.00 s", 2000: "2000 s"}
        self.assertEqual({value: figures.duration(value) for value in cases}, cases)

    def test_what_rounds_up_gets_the_next_unit(self) -> None:
        self.assertEqual(figures.duration(999.4e-9), "999 ns")
        self.assertEqual(figures.duration(999.6e-9), "1.00 us")
        self.assertEqual(figures.duration(9.996e-6), "10.0 us")
        self.assertEqual(figures.duration(99.96e-6), "100 us")

    def test_three_digits_without_zeros(self) -> None:
        cases = {1.2e-9: "1.2 ns", 12e-6: "12 us", 0.1204: "120 ms", 2.5: "2.5 s"}
        self.assertEqual({value: figures.short_duration(value) for value in cases}, cases)

    def test_errors_of_clocks(self) -> None:
        cases = {
            120.4e-9: "120 ns",
            0.4e-9: "0 ns",
            1.23e-6: "1.2 us",
            9.97e-6: "10 us",
            12.3e-6: "12 us",
            1.5e-3: "1500 us",
        }
        self.assertEqual({value: figures.rounded_error(value) for value in cases}, cases)

    def test_run_times_are_seconds_from_a_tenth_on(self) -> None:
        cases = {12.34: "12.3 s", 1.234: "1.23 s", 0.1234: "0.123 s", 0.0123: "12.3 ms"}
        self.assertEqual({value: figures.run_time(value) for value in cases}, cases)

    def test_costs_from_nanoseconds_to_hours(self) -> None:
        cases = {12345: "12,345 s", 12.34: "12.3 s", 1.2e-3: "1.2 ms", 1.2e-6: "1.20 us", 12e-9: "12.0 ns"}
        self.assertEqual({value: figures.cost(value) for value in cases}, cases)


class Others(unittest.TestCase):
    def test_sizes(self) -> None:
        cases = {100: "100 bytes", 2048: "2 KiB", 3 * 2**20: "3 MiB", 2**42: "4.0 TiB"}
        self.assertEqual({value: figures.size(value) for value in cases}, cases)
        self.assertEqual(figures.mebibytes(2**30), "1024 MiB")

    def test_percent_has_fewer_digits_where_there_is_more(self) -> None:
        self.assertEqual((figures.percent(0.5), figures.percent(12.34)), ("0.50 %", "12 %"))

    def test_lists(self) -> None:
        self.assertEqual([figures.listed(range(n)) for n in (1, 2, 3)], ["0", "0 and 1", "0, 1 and 2"])

    def test_quantiles_are_values_of_the_list(self) -> None:
        values = list(range(10, 20))
        self.assertEqual([figures.quantile(values, p) for p in (0, 50, 95, 100)], [10, 15, 19, 19])
        self.assertEqual(figures.quantile([7], 50), 7)


if __name__ == "__main__":
    unittest.main()
