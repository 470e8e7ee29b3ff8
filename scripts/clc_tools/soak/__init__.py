"""Random traces, corrected by the real program on real MPI ranks, and everything verified that can be: scripts/soak."""
