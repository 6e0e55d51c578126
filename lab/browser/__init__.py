"""The page in Chromium, measured together with torch-tb-profiler's on the same trace."""
