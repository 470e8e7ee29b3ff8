"""What a script is: its options, its messages, how it ends. Messages begin with the name that it was started by."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NoReturn


def name() -> str:
    return Path(sys.argv[0]).name


def parser(description: str | None) -> argparse.ArgumentParser:
    """Options of a script that is described by the text at the top of its module, in the lines as they stand there."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def complain(text: object) -> None:
    print(f"{name()}: {text}", file=sys.stderr)


def fail(text: object) -> NoReturn:
    """Ends the script with a message and exit status 1."""
    sys.exit(f"{name()}: {text}")


def progress(text: str) -> None:
    """A line about what is being done, beside what the script prints."""
    print(text, file=sys.stderr, flush=True)
