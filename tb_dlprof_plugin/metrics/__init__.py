"""A Profile and a selection in, totals out: the one place where numbers are added up, for pages, advice and reports."""
