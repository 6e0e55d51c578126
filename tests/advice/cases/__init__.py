"""Cases of the rules: a module per rule, whose `CASES` `test_cases` runs."""
