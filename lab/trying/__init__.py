"""`tb-dlprof try` on scripts with a planted fault, on scripts that are already good, and against exhaustive grids."""
