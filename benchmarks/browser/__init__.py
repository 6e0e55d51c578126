"""The page in Chromium, measured beside torch-tb-profiler's on the same trace."""
