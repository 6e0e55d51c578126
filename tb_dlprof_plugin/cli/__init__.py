"""``tb-dlprof``: one file per subcommand, argument handling and printing only; the views make the data."""
