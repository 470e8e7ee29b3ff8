#!/usr/bin/python3
"""The page of the demonstration: demo_page.py DIR writes DIR/index.html from what scripts/demo.sh has left there."""

import sys

sys.dont_write_bytecode = True
from clc_tools.demo_page import main  # noqa: E402

sys.exit(main())
