from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from clc_tools import page

TEXT = "before\n<!-- a: begin -->\nold\n<!-- a: end -->\nbetween\n<!-- b: begin -->\n<!-- b: end -->\nafter\n"


class Tables(unittest.TestCase):
    def test_words_come_before_numbers(self) -> None:
        made = page.table(("name", "count"), [("x", 1), ("y", 2)], 1)
        self.assertEqual(made, "| name | count |\n| --- | ---: |\n| x | 1 |\n| y | 2 |")

    def test_all_columns_are_words_if_nothing_is_said(self) -> None:
        self.assertEqual(page.heading(("a", "b")), "| a | b |\n| --- | --- |")


class Parts(unittest.TestCase):
    def test_only_what_is_between_the_comments_changes(self) -> None:
        made = page.with_parts(TEXT, {"a": "new", "b": "two\nlines"})
        self.assertEqual(
            made,
            "before\n<!-- a: begin -->\nnew\n<!-- a: end -->\nbetween\n"
            "<!-- b: begin -->\ntwo\nlines\n<!-- b: end -->\nafter\n",
        )
        self.assertEqual(page.with_parts(made, {"a": "new", "b": "two\nlines"}), made)

    def test_a_part_without_a_place_is_an_error(self) -> None:
        for text in ("", "<!-- c: begin -->\n", "<!-- c: end -->\n<!-- c: begin -->\n"):
            with self.assertRaisesRegex(ValueError, "no place for 'c'"):
                page.with_parts(text, {"c": ""})

    def test_a_page_is_compared_or_written(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            document = page.Page(Path(directory) / "page.md")
            document.path.write_text(TEXT)
            self.assertTrue(document.has({"a": "old"}))
            self.assertFalse(document.has({"a": "new"}))
            self.assertEqual(document.update({"a": "old"}, write=False, check=True, advice=""), 0)
            self.assertEqual(document.path.read_text(), TEXT)
            self.assertEqual(document.update({"a": "new"}, write=True, check=False, advice=""), 0)
            self.assertTrue(document.has({"a": "new"}))


if __name__ == "__main__":
    unittest.main()
