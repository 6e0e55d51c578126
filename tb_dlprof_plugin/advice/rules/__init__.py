"""One rule per file: ``RULE`` (its id), ``TITLE``, and ``check(context)``, a pure function that returns a finding or
`Silent`."""
