"""``tb-dlprof``: one file per subcommand, argument handling and printing only; `pages` builds the data."""
