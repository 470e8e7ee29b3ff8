"""How fast and how small is the program: scripts/bench, docs/performance.md.

`session` runs commands and gathers figures; `whole_runs`, `needs`, `ranks`, `communication`, `decoding`, `bounds`, `model` and `recording` are the parts that measure;
`machine` says where. `results`, `limits`, `drawings` and `document` make the page of what is in docs/performance/measured.json.
"""
