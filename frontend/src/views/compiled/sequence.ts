/** The launches of torch.compile's wrappers as an icicle draws them: graphs, modules in the order of the launches, launches. Pure. */
import type { CompiledRow } from "../../api/types";
import { NOTHING_ELIGIBLE, UNKNOWN } from "../../components/icicle/colours";
import type { IcicleNode } from "../../components/icicle/layout";
import { colourOf } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { WHOLE } from "../explore/workNodes";

export const launchKey = (row: CompiledRow): string => `${row.graph}:${row.number}`;

/** A path up to its first number: what repeats in a model, such as "blocks.3". */
export const blockOf = (path: string): string => /^.*?\d+(?=\.|$)/.exec(path)?.[0] ?? path;

/** The block of a launch: of several modules the one that holds all, "several" where none does. */
function placeOf(row: CompiledRow): string {
  if (row.modules === "") return "unknown module";
  const blocks = new Set(row.modules.split(", ").map(blockOf));
  return blocks.size === 1 ? [...blocks][0]! : "several";
}

/** All launches below one node; graphs by falling time, each in the order of its wrapper. */
export function sequenceOf(rows: readonly CompiledRow[]): IcicleNode {
  const graphs = new Map<string, CompiledRow[]>();
  for (const row of rows) {
    const launches = graphs.get(row.graph);
    if (launches) launches.push(row);
    else graphs.set(row.graph, [row]);
  }
  const places = [...new Set(rows.map(placeOf))].filter((place) => place !== "several").sort();
  const colour = (row: CompiledRow): string =>
    row.modules === ""
      ? UNKNOWN
      : placeOf(row) === "several"
        ? NOTHING_ELIGIBLE
        : colourOf("module", places.indexOf(placeOf(row)));
  const below = [...graphs].map(([graph, launches]) => {
    const ordered = launches.sort((one, other) => one.number - other.number);
    return inner(`graph ${graph}`, graph, runsOf(ordered, colour), "var(--accent-soft)");
  });
  below.sort((one, other) => other.ns - one.ns);
  return inner(WHOLE, "Compiled code", below, "var(--accent-soft)");
}

/** Launches in a row that are of one block. */
function runsOf(ordered: readonly CompiledRow[], colour: (row: CompiledRow) => string): IcicleNode[] {
  const runs: CompiledRow[][] = [];
  for (const row of ordered) {
    const last = runs[runs.length - 1];
    if (last && placeOf(last[0]!) === placeOf(row)) last.push(row);
    else runs.push([row]);
  }
  return runs.map((run) =>
    inner(
      `run ${launchKey(run[0]!)}`,
      placeOf(run[0]!),
      run.map((row) => launch(row, colour(row))),
      colour(run[0]!),
    ),
  );
}

function inner(key: string, label: string, below: IcicleNode[], colour: string): IcicleNode {
  const ns = below.reduce((sum, node) => sum + node.ns, 0);
  const tip = (iterations: number): string => `${label}\n${formatNs(ns / iterations)}`;
  return { key, label, name: label, ns, own: 0, below, unsent: 0, colour, hatched: false, tip };
}

function launch(row: CompiledRow, colour: string): IcicleNode {
  return {
    key: launchKey(row),
    label: row.kernel,
    name: row.kernel,
    ns: row.time_ns,
    own: 0,
    below: [],
    unsent: 0,
    colour,
    hatched: row.shared,
    tip: (iterations) =>
      [
        `${row.number}. ${row.kernel}`,
        formatNs(row.time_ns / iterations),
        row.modules || "module unknown",
        row.ops,
        row.places,
      ]
        .filter(Boolean)
        .join("\n"),
  };
}
