"""The page of the demonstration: demo_page.py DIR writes DIR/index.html from what scripts/demo.sh has left there."""

from __future__ import annotations

import html
import sys
from pathlib import Path

PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>clc-replay: a recording with wrong clocks, corrected</title>
<style>
body {{ font-family: sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }}
pre {{ background: #f4f4f4; padding: 1em; overflow-x: auto; }}
svg {{ max-width: 100%; height: auto; }}
iframe {{ width: 100%; height: 80vh; border: 1px solid #999; }}
</style>
<h1>A recording with wrong clocks, corrected</h1>
<p>A heat equation on 4 processes, whose clocks were made wrong in a known way. Curves are the errors of the clocks against the truth.</p>
<h2>As recorded</h2>
{before}
<h2>Corrected</h2>
{after}
<h2>Against the truth</h2>
<pre>{evaluation}</pre>
<h2>The report of the correction</h2>
<p><a href="report.html">report.html</a></p>
<iframe src="report.html" title="report of the correction"></iframe>
</html>
"""


def drawing(text: str) -> str:
    """An SVG file as a part of a page: without the declaration of a file of its own."""
    return text[text.index("<svg") :]


def page(before: str, after: str, evaluation: str) -> str:
    return PAGE.format(before=drawing(before), after=drawing(after), evaluation=html.escape(evaluation))


def main() -> int:
    directory = Path(sys.argv[1])
    texts = ((directory / name).read_text(encoding="utf-8") for name in ("before.svg", "after.svg", "evaluation.txt"))
    (directory / "index.html").write_text(page(*texts), encoding="utf-8")
    return 0
