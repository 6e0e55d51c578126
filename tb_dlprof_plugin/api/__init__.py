"""Pages as Python objects, with tables for pandas, CSV and JSON."""
