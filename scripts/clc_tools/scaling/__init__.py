"""The scaling model of docs/scaling.md: scripts/scaling. `model` predicts, `tables` and `drawings` show, `command` has the options."""
