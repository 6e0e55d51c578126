"""One rule per file: ``RULE`` (its id), ``TITLE``, and ``check(case)``, a pure function that finds or stays silent."""
