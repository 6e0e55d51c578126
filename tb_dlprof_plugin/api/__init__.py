"""Views as Python objects: a page's data in, its tables for pandas, CSV and JSON out."""
