"""Imports between the files of the crates: no cycles, and none upwards in the layers of the program. Files with unsafe code: those that are listed.

    scripts/structure          fails if files of a crate import each other in a cycle, or a layer of the program one above it,
                               or if the files that allow unsafe code are not those that docs/reliability.md has in its table
    scripts/structure --list   prints the cycles that are there, with the imports that make them

The layers are those of docs/architecture.md, in the order of its table. What only tests use does not count, nor what a module has of its own
children by their names alone. Nor do files that only have tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from .command import complain, parser
from .runner import ROOT

SOURCES = ROOT / "src"
PAGE = ROOT / "docs/architecture.md"
UNSAFE_PAGE = ROOT / "docs/reliability.md"
# Files of a crate that may still import each other in a cycle. The list only gets shorter: what is in no cycle any more has to go.
ALLOWED: dict[str, set[str]] = {}

# Imports by file: what a crate consists of.
Imports = dict[str, set[str]]
# A comment, a string of any kind, or a character, whichever comes first; lifetimes are none of them.
_TEXT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<h>#*)".*?"(?P=h)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""", re.DOTALL
)
_TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")
_PATH = re.compile(r"(?<![\w:$])(?:crate|self|super)(?=\s*::)")
_STEP = re.compile(r"\s*::\s*(\w+)")
_GROUP = re.compile(r"\s*::\s*\{")


def without_tests(text: str) -> str:
    """The code of a file: without comments, what is in quotes, and items that only tests have."""
    text = _TEXT.sub('""', text)
    while found := _TEST.search(text):
        text = text[: found.start()] + text[_end_of_item(text, found.end()) :]
    return text


def _end_of_item(text: str, start: int) -> int:
    """Behind the semicolon or the block that ends the item at `start`."""
    depth = 0
    for place, character in enumerate(text[start:], start):
        if character in "{([":
            depth += 1
        elif character in "})]":
            depth -= 1
        if depth < 0:
            return place
        if depth == 0 and character in ";}" and not text[place + 1 :].lstrip().startswith(";"):
            return place + 1
    return len(text)


def paths(text: str) -> Iterator[list[str]]:
    """The paths in a file that begin with `crate`, `self` or `super`, those of groups one by one."""
    for found in _PATH.finditer(text):
        yield from _continued(text, found.end(), [found.group()])


def _continued(text: str, at: int, begun: list[str]) -> Iterator[list[str]]:
    while step := _STEP.match(text, at):
        begun, at = [*begun, step.group(1)], step.end()
    group = _GROUP.match(text, at)
    if not group:
        yield begun
        return
    depth, start = 1, group.end()
    for place in range(group.end(), len(text)):
        character = text[place]
        if character in ",}" and depth == 1:
            member = text[start:place].strip()
            if member:
                yield from _continued("::" + member, 0, begun)
            start = place + 1
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return


def module_of(file: Path) -> str:
    """The path of the module that a file is, within its crate: `matching::messages`; empty for the crate itself."""
    parts = [*file.parent.parts, file.stem]
    return "::".join(parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts)


def imports(files: dict[Path, str]) -> Imports:
    """Which modules each module of a crate names, from its files: path within the crate, text."""
    modules = {module_of(file): text for file, text in files.items()}
    return {module: set(_named(module, text, modules.keys())) for module, text in modules.items()}


def _named(module: str, text: str, modules: Iterable[str]) -> Iterator[str]:
    own = module.split("::") if module else []
    known = set(modules)
    for first, *rest in paths(without_tests(text)):
        base = {"crate": [], "self": own, "super": own[:-1]}[first]
        while rest[:1] == ["super"]:
            base, rest = base[:-1], rest[1:]
        path = base + rest
        while path and "::".join(path) not in known:
            path = path[:-1]
        target = "::".join(path)
        if target != module:
            yield target


def cycles(graph: Imports) -> list[set[str]]:
    """Groups of more than one module that can all be reached from each other (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for used in sorted(graph.get(module, ())):
            if used not in order:
                visit(used)
                lowest[module] = min(lowest[module], lowest[used])
            elif used in stack:
                lowest[module] = min(lowest[module], order[used])
        if lowest[module] == order[module]:
            place = stack.index(module)
            group = set(stack[place:])
            del stack[place:]
            if len(group) > 1:
                found.append(group)

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return found


def layers(page: str) -> list[str]:
    """The layers of the program from above, as the table of the page on architecture has them."""
    table = page.split("| layer | contents |", 1)[1].split("\n\n", 1)[0]
    return [name.removesuffix(".rs") for name in re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE)]


def upwards(graph: Imports, order: list[str]) -> list[str]:
    """Imports that go up in `order`, and folders that are not in it."""
    complaints = []
    for module, used in sorted(graph.items()):
        folder = module.split("::")[0]
        if not folder:
            continue
        if folder not in order:
            complaints.append(f"{folder} is no layer of docs/architecture.md")
            continue
        for target in sorted(used):
            above = target.split("::")[0]
            if above in order and order.index(above) < order.index(folder):
                complaints.append(f"{module} imports {target}, which is above it")
    return complaints


def listed_as_unsafe(page: str) -> set[str]:
    """The files and folders of the table of unsafe code that are below src; `a/{b,c}.rs` are two."""
    table = page.split("## Unsafe code", 1)[1].split("\n\n", 3)[2]
    cells = (row.split("|")[1] for row in table.splitlines() if row.startswith("| `"))
    names = (name for cell in cells for name in re.findall(r"`(src/[^`]+)`", cell))
    return {name for pattern in names for name in _alternatives(pattern)}


def _alternatives(pattern: str) -> list[str]:
    found = re.fullmatch(r"(.*)\{(.*)\}(.*)", pattern)
    return [found[1] + part + found[3] for part in found[2].split(",")] if found else [pattern]


def unsafe_complaints(allowing: set[str], listed: set[str], folders: set[str]) -> list[str]:
    """Files that allow unsafe code without being in the table, and those in it that do not, whole `folders` aside."""
    below = {file for file in allowing for folder in listed & folders if file.startswith(folder + "/")}
    new = [f"{file}: unsafe code that docs/reliability.md does not list" for file in sorted(allowing - listed - below)]
    gone = [f"{name}: no unsafe code, but docs/reliability.md lists it" for name in sorted(listed - allowing - folders)]
    return new + gone


def allowing_unsafe_code() -> set[str]:
    """Files of the crates that allow it, without those that only have tests."""
    files = (file for file in SOURCES.rglob("*.rs") if not file.stem.endswith("tests"))
    allowed = (file for file in files if re.search(r"\ballow\(unsafe_code\)", file.read_text(encoding="utf-8")))
    return {file.relative_to(ROOT).as_posix() for file in allowed}


def judged(found: dict[str, list[set[str]]], allowed: dict[str, set[str]]) -> list[str]:
    """What is wrong with the cycles of the crates, and with the list of those that are allowed."""
    complaints = []
    for crate, groups in sorted(found.items()):
        for group in groups:
            if not group <= allowed.get(crate, set()):
                complaints.append(f"{crate}: a cycle of files: {', '.join(sorted(group))}")
        stale = allowed.get(crate, set()) - set().union(*groups)
        if stale:
            complaints.append(f"{crate}: in no cycle any more, to be taken from the list: {', '.join(sorted(stale))}")
    return complaints


def crates() -> dict[str, dict[Path, str]]:
    """The files of each crate by its folder; those of the program have the name of the top-level folder."""
    members = sorted(path.parent for path in SOURCES.glob("*/Cargo.toml"))
    found = {}
    for folder in [SOURCES, *(member / "src" for member in members)]:
        others = {*members, SOURCES / "examples"} if folder == SOURCES else set()
        files = (file for file in folder.rglob("*.rs") if not others & set(file.parents))
        name = "program" if folder == SOURCES else folder.parent.name
        found[name] = {file.relative_to(folder): file.read_text(encoding="utf-8") for file in files}
    return found


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--list", action="store_true")
    chosen = options.parse_args()
    graphs = {crate: imports(files) for crate, files in crates().items()}
    found = {crate: cycles(graph) for crate, graph in graphs.items()}
    if chosen.list:
        for crate, groups in found.items():
            for group in groups:
                for module in sorted(group):
                    print(f"{crate}: {module or crate} imports {', '.join(sorted(graphs[crate][module] & group))}")
        return 0
    complaints = judged(found, ALLOWED) + upwards(graphs["program"], layers(PAGE.read_text(encoding="utf-8")))
    listed = listed_as_unsafe(UNSAFE_PAGE.read_text(encoding="utf-8"))
    complaints += unsafe_complaints(allowing_unsafe_code(), listed, {name for name in listed if (ROOT / name).is_dir()})
    for complaint in complaints:
        complain(complaint)
    if not complaints:
        left = sum(map(len, found.values()))
        print(
            f"structure: {sum(map(len, graphs.values()))} files, no import upwards, {left} known cycles left, unsafe code as listed"
        )
    return 1 if complaints else 0
