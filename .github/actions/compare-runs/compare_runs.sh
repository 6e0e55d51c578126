#!/usr/bin/env bash
# Compares $BASE with $CANDIDATE; writes compare.json, compare.md and pair.html into $FOLDER, the text into the job's
# summary, the verdict into the outputs. The status is that of `tb-dlprof compare`.
set -euo pipefail
mkdir -p "$FOLDER"
limit=(--fail-if-slower "$PERCENT")
if [ "$FAIL_IF_UNSURE" = true ]; then limit+=(--fail-if-unsure); fi

status=0
tb-dlprof compare "$BASE" "$CANDIDATE" "${limit[@]}" --format json >"$FOLDER/compare.json" || status=$?
if [ "$status" -ne 0 ] && [ "$status" -ne 1 ] && [ "$status" -ne 4 ]; then exit "$status"; fi
# The status of this one is the same.
tb-dlprof compare "$BASE" "$CANDIDATE" "${limit[@]}" --format markdown >"$FOLDER/compare.md" 2>/dev/null || true
cat "$FOLDER/compare.md" >>"${GITHUB_STEP_SUMMARY:-/dev/stdout}"
tb-dlprof export "$BASE" "$CANDIDATE" --html "$FOLDER/pair.html" --force >/dev/null
verdict=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["regression"]["verdict"])' "$FOLDER/compare.json")
echo "verdict=$verdict" >>"${GITHUB_OUTPUT:-/dev/stdout}"
exit "$status"
