"""Holds every rule to its planted training, and lists what all rules say of the demo's recorded runs.

    python -m lab.planted.report [--recorded DIRECTORY]

A row per rule: does it find its fault, is it silent once that is fixed, is the saving that it states the one that was
realised, and which other rules fire on the fixed training. The last line has the totals.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .held import RECORDED, all_held, planted_rules
from .tables import DEMO_COLUMNS, PLANTED_COLUMNS, demo_rows, plain, planted_row, totals


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--recorded", type=Path, default=RECORDED, help="what lab.planted.record wrote")
    args = parser.parse_args()
    rows = list(all_held(args.recorded))
    print(plain(DEMO_COLUMNS, demo_rows()))
    print()
    print(plain(PLANTED_COLUMNS, [planted_row(one) for one in rows]).replace("**", ""))
    if without := sorted(set(planted_rules(args.recorded)) - {one.rule for one in rows}):
        print(f"recorded, but no rule looks for it: {', '.join(without)}")
    print(totals(rows))


if __name__ == "__main__":
    main()
