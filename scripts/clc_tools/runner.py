"""Starting programs: the one under test, launchers of MPI, tools; and scratch directories for what they write."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .command import fail

ROOT = Path(__file__).resolve().parents[2]
# Open MPI refuses to run as root unless told twice; only a container or a test machine gets here as root (see mpi_env.sh).
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Of Open MPI: more processes than cores, none of them bound to a core for which others wait.
OVERSUBSCRIBE = ("--oversubscribe", "--bind-to", "none")
OPEN_MPI = ("mpirun.openmpi", "mpirun")
MPICH = ("mpiexec.mpich",)
# An argument of a command: what `str` makes a word of.
Word = object


class CommandFailed(RuntimeError):
    """A command that ended with another exit status than 0; the message has the end of what it said on standard error."""

    def __init__(self, command: Sequence[Word], status: int, said: str) -> None:
        super().__init__(f"{' '.join(map(str, command))}: exit status {status}: {said.strip()[-2000:]}")
        self.status, self.said = status, said


def program(variable: str = "CLC_REPLAY", built: str = "target/release/clc-replay") -> str:
    """The program under test: what the environment names, or what was built; absolute, since commands have directories of their own."""
    given = os.environ.get(variable)
    return str(Path(shutil.which(given) or given).absolute() if given else ROOT / built)


def mpi_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of commands that may start MPI programs."""
    return {**os.environ, **AS_ROOT, **(more or {})}


def launcher(names: Sequence[str] = OPEN_MPI, variable: str = "MPIEXEC") -> list[str]:
    """The launcher of MPI programs that the environment names, or the first of `names` that is installed; empty if there is none."""
    return os.environ.get(variable, "").split() or [name for name in names if shutil.which(name)][:1]


@functools.cache
def launch() -> tuple[str, ...]:
    """A launcher with the options that allow more ranks than cores."""
    command = launcher()
    if not command:
        fail(f"no launcher {' or '.join(OPEN_MPI)}; scripts/setup.sh installs it")
    version = version_of(command).lower()
    return *command, *(OVERSUBSCRIBE if "open mpi" in version or "openrte" in version else ())


def version_of(command: Sequence[str]) -> str:
    return subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout


def on_ranks(ranks: int) -> list[str]:
    """What stands before a command that is to run on so many MPI ranks; nothing for none."""
    return [*launch(), "-n", str(ranks)] if ranks else []


def output(command: Sequence[Word], environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Runs a command; what it says on standard output. Its environment is that of MPI programs if none is given."""
    environment = mpi_environment() if environment is None else environment
    words = list(map(str, command))
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=cwd, check=False)
    if done.returncode != 0:
        raise CommandFailed(words, done.returncode, done.stderr)
    return done.stdout


def alone(*arguments: Word, status: Sequence[int] = (0,), cwd: Path | None = None) -> str:
    """Runs the program under test in one process without MPI, and insists on its exit status; what it says on standard output."""
    words = list(map(str, arguments))
    environment = {**os.environ, "CLC_REPLAY_MPI": "never"}
    done = subprocess.run([program(), *words], capture_output=True, text=True, env=environment, cwd=cwd, check=False)
    if done.returncode not in status:
        fail(f"clc-replay {' '.join(words)}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


@contextlib.contextmanager
def scratch(
    keep: str | Path | None = None, prefix: str = "clc-replay-", parent: str | Path | None = None
) -> Iterator[Path]:
    """A directory that is removed in the end, or `keep`, which stays."""
    if keep:
        directory = Path(keep).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as temporary:
        yield Path(temporary).resolve()


def size_of(directory: Path, suffix: str = "") -> int:
    """Bytes of all files below a directory whose names end with `suffix`."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file() and path.name.endswith(suffix))
