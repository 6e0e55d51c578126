/** Where the step of each rank goes: one row a rank, however many there are; a row opens its rank. */
import { useMemo } from "preact/hooks";
import type { JobAccount } from "../../api/types";
import { Card } from "../../components/Card";
import { Legend } from "../../components/Legend";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
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

const LEGEND = PARTS.map(({ key, title }) => ({ key, label: title, value_ns: null, percent: null }));
const DEFINITION_OF = new Map<string, string>(PARTS.map(({ key }) => [key, DEFINITIONS[DEFINED[key]]]));

function columnsFor(longestNs: number): Column<RankRow>[] {
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
    ...PARTS.map(
      ({ key, title }, index): Column<RankRow> => ({
        id: key,
        header: title,
        definition: DEFINITIONS[DEFINED[key]],
        value: (row) => row.parts[index] ?? null,
        unit: "ns",
        width: "136px",
      }),
    ),
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

interface RankAccountsProps {
  run: string;
  account: JobAccount;
  selected: string | null;
  onOpen: (rank: number) => void;
}

export function RankAccounts({ run, account, selected, onOpen }: RankAccountsProps) {
  const rows = useMemo(() => rankRows(account), [account]);
  const columns = useMemo(() => columnsFor(account.step_ns.reduce((most, ns) => Math.max(most, ns), 1)), [account]);
  return (
    <Card title="Where the step of each rank goes" testId="rank-accounts">
      <Legend plain slices={LEGEND} context="job" definitions={DEFINITION_OF} />
      <DataTable
        name={`ranks ${run}`}
        testId="ranks-table"
        options={ranksTable}
        columns={columns}
        rows={rows}
        rowId={(row) => String(row.rank)}
        selected={selected}
        onSelect={(row) => onOpen(row.rank)}
      />
    </Card>
  );
}
