/** The Distributed page: the ranks of a run side by side, from the index of runs. A row opens its rank. */
import { useMemo } from "preact/hooks";
import type { RunEntry } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { EmptyMessage } from "../../components/Message";
import { PageHead } from "../../features/PageHead";
import { slowestRank, ranksOf, type RankItem } from "../../features/pickers/ranks";
import { formatPercent } from "../../format/number";
import { resolveChoice } from "../../state/profileChoice";
import { openPage } from "../../state/navigate";
import { profileParam } from "../../state/sharedParams";
import { ranksTable } from "./params";

const COLUMNS: Column<RunEntry>[] = [
  {
    id: "rank",
    header: "Rank",
    definition: "Number of the process in the job.",
    value: (row) => row.rank,
    unit: "count",
    width: "90px",
  },
  {
    id: "step",
    header: "Recorded step",
    definition:
      "Mean time of the recorded steps, with the profiler. Ranks that wait for each other in every step have equally long ones.",
    value: (row) => row.recorded_iteration_ns,
    unit: "ns",
    width: "140px",
  },
  {
    id: "iterations",
    header: "Iterations",
    definition: "Recorded iterations of the latest cycle.",
    value: (row) => row.iterations,
    unit: "count",
    width: "110px",
  },
  {
    id: "cycles",
    header: "Cycles",
    definition: "Recordings of this rank in the session.",
    value: (row) => row.cycles.length,
    unit: "count",
    width: "90px",
  },
  {
    id: "precision",
    header: "Precision",
    definition: "What the run computed in.",
    value: (row) => row.precision,
    width: "160px",
  },
  { id: "device", header: "Device", definition: "GPU of the rank.", value: (row) => row.device, width: "240px" },
];

export function DistributedPage({ entries }: { entries: RunEntry[] }) {
  const choice = resolveChoice(entries, profileParam.value);
  const run = choice?.run ?? null;
  const session = choice?.session ?? null;
  const rows = useMemo(() => (run === null ? [] : ranksOf(entries, run, session)), [entries, run, session]);
  return (
    <>
      <PageHead title="Distributed" headline={headlineOf(rows)} />
      {rows.length < 2 ? (
        <EmptyMessage>
          Record each process of a job with the same logdir, and their ranks stand here side by side.
        </EmptyMessage>
      ) : (
        <DataTable
          name={`ranks ${run ?? ""}`}
          testId="ranks-table"
          options={ranksTable}
          columns={COLUMNS}
          rows={rows}
          rowId={(row) => String(row.rank)}
          selected={choice?.rank === null || choice === null ? null : String(choice.rank)}
          onSelect={(row) =>
            openPage("overview", profileParam.to({ ...profileParam.value, run, rank: row.rank, cycle: null }))
          }
        />
      )}
    </>
  );
}

function headlineOf(rows: readonly RunEntry[]): string {
  if (rows.length < 2) return "This run has 1 rank.";
  const items: RankItem[] = rows.map(({ rank, recorded_iteration_ns }) => ({ rank, stepNs: recorded_iteration_ns }));
  if (items.some(({ stepNs }) => stepNs === null)) return `${rows.length} ranks; the step of some is unknown.`;
  const slowest = slowestRank(items);
  return slowest === null
    ? `The recorded steps of the ${rows.length} ranks are equally long.`
    : `Rank ${slowest.rank} has the longest recorded steps, ${formatPercent(slowest.percent)} above the median of ${rows.length} ranks.`;
}
