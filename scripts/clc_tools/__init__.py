"""What the Python scripts in scripts/ are made of; each of those files only calls the `main` of a module here.

Shared by all, and each thing once:

    command   what a script is: its options, its messages, how it ends
    runner    starting programs: the one under test, launchers of MPI; scratch directories
    reports   JSON in and out
    traces    arguments of `clc-replay simulate`
    figures   numbers as text, shares of sorted values
    page      Markdown tables, and their places in the documentation
    plots     figures drawn by matplotlib

A script of one file is the module of its name (`accuracy`, `clock_offsets`, `licences`, ...); `bench`, `scaling` and `soak` are packages, whose
`command` has the options. Only the standard library is needed, matplotlib for plots, and python3-otf2 for `round_trips`. The judges in tests/tools
share nothing with this package on purpose.
"""
