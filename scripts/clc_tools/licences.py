"""Licences and documentation of the dependencies.

    scripts/licences           fails if a crate has a licence that is not on the list below, or a direct dependency is not explained
    scripts/licences --list    prints every crate with its licence

All crates that are built on this platform count, those for tests and for building too. A licence expression is allowed if
some choice within it is. A crate that is used directly has to be explained in docs/dependencies.md.
"""

from __future__ import annotations

import re
from pathlib import Path

from . import reports
from .command import complain, fail, parser
from .reports import Json
from .runner import ROOT, CommandFailed, output

PAGE = ROOT / "docs/dependencies.md"
MANIFESTS = (ROOT / "Cargo.toml", ROOT / "tests/fuzz/Cargo.toml")
# Licences that a program under MIT or Apache-2.0 can be distributed with, without conditions beyond naming the authors.
ALLOWED = {
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unlicense",
    "CC0-1.0",
    "BSL-1.0",
    "Unicode-3.0",
}
# Crates that may have another one: name -> (licence, why).
EXCEPTIONS = {
    "libfuzzer-sys": ("NCSA", "only in tests/fuzz, never distributed"),
}


class Expression:
    """A licence expression of SPDX, read from left to right. Old crates write "/" for OR."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = re.findall(r"[()]|[^\s()]+", text.replace("/", " OR "))

    def next_is(self, token: str) -> bool:
        return self.tokens[:1] == [token]

    def take(self) -> str:
        return self.tokens.pop(0) if self.tokens else ""

    def either(self, licences: set[str]) -> bool:
        result = self.both(licences)
        while self.next_is("OR"):
            self.take()
            result = self.both(licences) or result
        return result

    def both(self, licences: set[str]) -> bool:
        result = self.single(licences)
        while self.next_is("AND"):
            self.take()
            result = self.single(licences) and result
        return result

    def single(self, licences: set[str]) -> bool:
        token = self.take()
        if token == "(":
            result = self.either(licences)
            return self.take() == ")" and result
        if self.next_is("WITH"):
            self.take()
            token += f" WITH {self.take()}"
        return token in licences


def allowed(text: str, licences: set[str]) -> bool:
    """Whether an SPDX expression can be satisfied with `licences`."""
    expression = Expression(text)
    return expression.either(licences) and not expression.tokens


def platform() -> str:
    lines = output(["rustc", "-vV"]).splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def packages(manifest: Path) -> tuple[list[Json], set[str]]:
    """All crates of others that a package is built with, and the names of those that it asks for itself."""
    options = ["--format-version", "1", "--locked", "--filter-platform", platform(), "--manifest-path", manifest]
    try:
        data = reports.parse(output(["cargo", "metadata", *options], cwd=ROOT))
    except CommandFailed as failed:
        fail(f"cargo metadata failed for {manifest}: {failed.said.strip()}")
    return [package for package in data["packages"] if package["source"]], direct(data)


def direct(metadata: Json) -> set[str]:
    """Names of the crates of others that the members of a workspace ask for themselves; a crate without a source is one of our own."""
    own = set(metadata["workspace_members"])
    asked = [package["dependencies"] for package in metadata["packages"] if package["id"] in own]
    return {dependency["name"] for dependencies in asked for dependency in dependencies if dependency["source"]}


def judged(found: dict[tuple[str, str], str]) -> list[str]:
    """What is wrong with the licences of crates (name and version: licence), and with the exceptions."""
    complaints, used = [], set()
    for (name, version), licence in sorted(found.items()):
        more, _ = EXCEPTIONS.get(name, (None, None))
        if allowed(licence, ALLOWED):
            continue
        if more and allowed(licence, ALLOWED | {more}):
            used.add(name)
            continue
        complaints.append(f"{name} {version} has the licence '{licence or 'none'}'")
    return complaints + [f"the exception for {name} is not needed any more" for name in sorted(set(EXCEPTIONS) - used)]


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--list", action="store_true")
    chosen = options.parse_args()
    explained = PAGE.read_text(encoding="utf-8")
    complaints: list[str] = []
    seen: dict[tuple[str, str], str] = {}
    for manifest in MANIFESTS:
        found, asked = packages(manifest)
        seen |= {(package["name"], package["version"]): package["license"] or "" for package in found}
        missing = (name for name in sorted(asked) if f"`{name}`" not in explained)
        complaints += [f"{name} is not explained in docs/dependencies.md" for name in missing]
    if chosen.list:
        for (name, version), licence in sorted(seen.items()):
            print(f"{name} {version}: {licence}")
    complaints += judged(seen)
    for complaint in complaints:
        complain(complaint)
    if not chosen.list and not complaints:
        print(f"licences: {len(seen)} crates, all allowed; every direct dependency is explained")
    return 1 if complaints else 0
