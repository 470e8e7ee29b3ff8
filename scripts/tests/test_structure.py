from __future__ import annotations

import unittest
from pathlib import Path

from clc_tools import structure


def imports(**files: str) -> structure.Imports:
    """Of a crate of these files, whose names have `__` for `/`."""
    return structure.imports({Path(name.replace("__", "/") + ".rs"): text for name, text in files.items()})


class Imports(unittest.TestCase):
    def test_paths_of_all_kinds(self) -> None:
        text = "use crate::{a::{self, B}, c::D as E}; use super::super::f; fn g(h: &self::i::J) { crate::k!(); }"
        expected = ["crate::a::self", "crate::a::B", "crate::c::D", "super::super::f", "self::i::J", "crate::k"]
        self.assertEqual(["::".join(path).split(" ")[0] for path in structure.paths(text)], expected)

    def test_files_are_found_by_what_they_have(self) -> None:
        graph = imports(
            lib="mod a; mod b;",
            a__mod="mod c; use self::c::X; use c::Y;",
            a__c="use super::super::b::Y; use super::Z;",
            b="use crate::a;",
        )
        self.assertEqual(graph, {"": set(), "a": {"a::c"}, "a::c": {"b", "a"}, "b": {"a"}})

    def test_comments_texts_and_tests_import_nothing(self) -> None:
        graph = imports(
            a="""
            // use crate::b;
            /* use crate::b; */
            const T: &str = "use crate::b;"; const R: &str = r#"use crate::b; " "#; const Q: char = '"';
            #[cfg(test)]
            use crate::b;
            #[cfg(test)]
            mod tests { use crate::b; fn f() { if true {} } }
            #[cfg(all(test, feature = "mpi"))]
            #[path = "x.rs"]
            mod more;
            fn f<'a>(_: &'a crate::c::C) {}
            """,
            b="",
            c="",
        )
        self.assertEqual(graph, {"a": {"c"}, "b": set(), "c": set()})


class Cycles(unittest.TestCase):
    def test_a_cycle_is_found_whatever_hangs_on_it(self) -> None:
        graph = imports(a="use crate::b;", b="use crate::{c, d};", c="use crate::a;", d="", e="use crate::a;")
        self.assertEqual(structure.cycles(graph), [{"a", "b", "c"}])

    def test_without_one_there_is_none(self) -> None:
        self.assertEqual(structure.cycles(imports(a="use crate::{b, c};", b="use crate::c;", c="")), [])

    def test_a_new_one_and_one_that_grows_are_named(self) -> None:
        allowed = {"x": {"a", "b"}}
        self.assertEqual(structure.judged({"x": [{"a", "b"}], "y": []}, allowed), [])
        self.assertEqual(structure.judged({"x": [{"a", "b"}, {"c", "d"}]}, allowed), ["x: a cycle of files: c, d"])
        self.assertEqual(structure.judged({"x": [{"a", "b", "c"}]}, allowed), ["x: a cycle of files: a, b, c"])
        both = {"x": [{"a", "b"}], "y": [{"a", "b"}]}
        self.assertEqual(structure.judged(both, allowed), ["y: a cycle of files: a, b"])

    def test_the_list_gets_shorter(self) -> None:
        said = structure.judged({"x": [{"a", "b"}]}, {"x": {"a", "b", "c"}})
        self.assertEqual(said, ["x: in no cycle any more, to be taken from the list: c"])
        self.assertEqual(len(structure.judged({"x": []}, {"x": {"a", "b"}})), 1)


class Layers(unittest.TestCase):
    def test_an_import_upwards_is_named(self) -> None:
        page = "# A\n\n| layer | contents |\n| --- | --- |\n| `a` | x |\n| `b.rs` | y |\n\n| `c` | z |\n"
        order = structure.layers(page)
        self.assertEqual(order, ["a", "b"])
        self.assertEqual(structure.upwards(imports(a__x="use crate::b;", b=""), order), [])
        upwards = structure.upwards(imports(a__x="", b="use crate::a::x::Y;"), order)
        self.assertEqual(upwards, ["b imports a::x, which is above it"])

    def test_a_folder_without_a_layer_is_named(self) -> None:
        self.assertEqual(structure.upwards(imports(c=""), ["a"]), ["c is no layer of docs/architecture.md"])

    def test_the_page_has_those_of_the_program(self) -> None:
        order = structure.layers(structure.PAGE.read_text(encoding="utf-8"))
        self.assertEqual((order[0], order[-1]), ("main", "report"))
        self.assertIn("program", structure.crates())
        self.assertIn("engine", structure.crates())


class UnsafeCode(unittest.TestCase):
    PAGE = """text
## Unsafe code

Some words.

| file | purpose |
| --- | --- |
| `src/a.rs` | one |
| `src/b/{c,d}.rs`, `src/e/f.rs` | three |
| `src/g` (a library) | all of it |
| `tests/h.rs` | not looked at |

More.
"""

    def test_the_table_is_read(self) -> None:
        expected = {"src/a.rs", "src/b/c.rs", "src/b/d.rs", "src/e/f.rs", "src/g"}
        self.assertEqual(structure.listed_as_unsafe(self.PAGE), expected)

    def test_what_is_new_and_what_is_gone_is_named(self) -> None:
        listed = structure.listed_as_unsafe(self.PAGE)
        files = {"src/a.rs", "src/b/c.rs", "src/b/d.rs", "src/e/f.rs", "src/g/i.rs"}
        self.assertEqual(structure.unsafe_complaints(files, listed, {"src/g"}), [])
        changed = files - {"src/a.rs"} | {"src/j.rs"}
        found = structure.unsafe_complaints(changed, listed, {"src/g"})
        self.assertEqual([complaint.split(":")[0] for complaint in found], ["src/j.rs", "src/a.rs"])


if __name__ == "__main__":
    unittest.main()
