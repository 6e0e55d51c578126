"""One rule per file: its page is the docstring, ``RULE`` declares what it needs, the documented constants are its
thresholds, and ``check(context)``, a pure function, returns a finding or `Silent`."""
