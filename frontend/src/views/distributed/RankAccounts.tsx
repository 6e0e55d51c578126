/** Where the step of each rank goes: one row a rank, however many there are; a row opens its rank. */
import { useMemo } from "preact/hooks";
import type { JobAccount } from "../../api/types";
import { Card } from "../../components/Card";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { Value } from "../../components/Value";
import { colourOf } from "../../format/colours";
import { DEFINITIONS } from "../../format/definitions";
import { formatNs } from "../../format/duration";
import { PARTS, rankRows, type RankRow } from "./account";
import { ranksTable } from "./params";

const DEFINED = {
  compute: "jobCompute",
  communication: "jobTransfer",
  waiting: "jobWaiting",
  bubble: "jobBubble",
  host: "jobHost",
} as const;

/** The parts that some rank has. */
function columnsFor(longestNs: number, rows: readonly RankRow[]): Column<RankRow>[] {
  return [
    {
      id: "rank",
      header: "Rank",
      definition: "Number of the process in the job.",
      value: (row) => row.rank,
      width: "70px",
    },
    {
      id: "bar",
      header: "Step",
      definition: DEFINITIONS.jobStep,
      value: (row) => row.stepNs,
      cell: (row) => <Bar row={row} longestNs={longestNs} />,
      width: "320px",
    },
    ...PARTS.flatMap(({ key, title }, index): Column<RankRow>[] => {
      const value = (row: RankRow): number | null => row.parts[index] ?? null;
      if (rows.every((row) => value(row) === 0)) return [];
      const cell = (row: RankRow) => (
        <>
          <span class="swatch" style={{ background: colourOf(key, index, "job") }} />{" "}
          <Value value={value(row)} unit="ns" />
        </>
      );
      return [
        { id: key, header: title, definition: DEFINITIONS[DEFINED[key]], value, cell, unit: "ns", width: "136px" },
      ];
    }),
  ];
}

function Bar({ row, longestNs }: { row: RankRow; longestNs: number }) {
  return (
    <div class="stacked-bar job-bar" aria-hidden="true">
      {PARTS.map(({ key, title }, index) => {
        const part = row.parts[index] ?? 0;
        return part > 0 ? (
          <span
            key={key}
            style={{ width: `${(100 * part) / longestNs}%`, background: colourOf(key, index, "job") }}
            title={`${title}: ${formatNs(part)}`}
          />
        ) : null;
      })}
    </div>
  );
}

/** As many are found without a filter. */
const PLAIN_ROWS = 16;

interface RankAccountsProps {
  run: string;
  account: JobAccount;
  selected: string | null;
  onOpen: (rank: number) => void;
}

export function RankAccounts({ run, account, selected, onOpen }: RankAccountsProps) {
  const rows = useMemo(() => rankRows(account), [account]);
  const columns = useMemo(
    () =>
      columnsFor(
        account.step_ns.reduce((most, ns) => Math.max(most, ns), 1),
        rows,
      ),
    [account, rows],
  );
  return (
    <Card title="Where the step of each rank goes" testId="rank-accounts">
      <DataTable
        name={`ranks ${run}`}
        testId="ranks-table"
        options={ranksTable}
        plain={rows.length <= PLAIN_ROWS}
        columns={columns}
        rows={rows}
        rowId={(row) => String(row.rank)}
        selected={selected}
        onSelect={(row) => onOpen(row.rank)}
      />
    </Card>
  );
}
