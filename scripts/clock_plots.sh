#!/usr/bin/env bash
# Draws the plots of docs/clocks.md: what the clock models look like, as recorded and after linear pre-synchronisation.
#
#     scripts/clock_plots.sh
#
# The binary is target/release/clc-replay (CLC_REPLAY names another one).
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "${CLC_REPLAY:-target/release/clc-replay}")
export CLC_REPLAY_MPI=never
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p docs/clocks

draw() { # name, number of nodes, clock
    (
        cd "$work"
        "$binary" simulate "$1" --pattern butterfly --ranks "$2" --ranks-per-node 1 --events 8k --compute 1ms \
            --clock "$3" --quiet
        "$binary" evaluate "$1" --truth "$1" --presync linear --plot "$1.svg" --quiet
    )
    mv "$work/$1.svg" "docs/clocks/$1.svg"
    echo "docs/clocks/$1.svg"
}

draw sine 4 'sine=20us/0.5s'
draw walk 4 'walk=50ppm'
draw ntp 4 'ntp=50us/20%'
draw jump-stuck 4 '1:jump=500us@40%;2:stuck=200us@60%;3:resolution=50us'
draw decentralised3 3 decentralised3
draw decentralised3-failing 3 decentralised3-failing
draw decentralised12 12 decentralised12
draw decentralised12-failing 12 decentralised12-failing
