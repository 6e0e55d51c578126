"""`tb-dlprof run`: starts an unchanged training script with the hook and prints what was recorded."""
