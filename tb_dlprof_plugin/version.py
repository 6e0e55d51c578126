"""The version of the package."""

__version__ = "1.0.0"
PUBLISHED = False
"""Whether PyPI has this version. `make generate` then writes README, docs and notebook to install it from there."""
