/** The Reports page: DLProf's textual reports and ours, each as a table, with the question that each answers. */
import { useContext, useMemo } from "preact/hooks";
import { GrowingContext } from "../../components/table/GrowingContext";
import type { ReportEntry, ReportPage } from "../../api/types";
import { PageHead } from "../../features/PageHead";
import { DataTable } from "../../components/table/DataTable";
import { formatInteger } from "../../format/number";
import { columnsOf, rowsOf } from "./columns";
import { assign } from "../../state/param";
import { reportTable, toReport } from "./params";

export function ReportsPage({ data }: { data: ReportPage }) {
  const columns = useMemo(() => columnsOf(data), [data]);
  const rows = useMemo(() => rowsOf(data), [data]);
  const ours = data.reports.filter((report) => !report.of_dlprof);
  const dlprof = data.reports.filter((report) => report.of_dlprof);
  const pick = (report: string): void => assign(...toReport(report));
  return (
    <>
      <PageHead title="Reports" subtitle={data.title} headline={data.headline} range={data.range} />
      <div class="reports">
        <label class="reports-select picker">
          <span>Report</span>
          <select data-testid="report-picker" value={data.name} onChange={(event) => pick(event.currentTarget.value)}>
            <optgroup label="Torch, CUDA and kernels">{ours.map(option)}</optgroup>
            <optgroup label="DLProf's reports">{dlprof.map(option)}</optgroup>
          </select>
        </label>
        <nav class="reports-list" aria-label="Reports">
          <Group title="Torch, CUDA and kernels" reports={ours} shown={data.name} onPick={pick} />
          <Group title="DLProf's reports" reports={dlprof} shown={data.name} onPick={pick} />
        </nav>
        <div class="reports-table">
          <p class="muted small">{data.question}</p>
          <Notes data={data} />
          <DataTable
            key={data.name}
            name={`${data.name} ${data.ref.run}`}
            testId="report-table"
            options={reportTable}
            columns={columns}
            rows={rows}
            rowId={(row) => String(row.place)}
            totalRows={data.total_rows}
          />
        </div>
      </div>
    </>
  );
}

const option = (report: ReportEntry) => (
  <option key={report.name} value={report.name}>
    {report.title}
  </option>
);

interface GroupProps {
  title: string;
  reports: ReportEntry[];
  shown: string;
  onPick: (name: string) => void;
}

function Group({ title, reports, shown, onPick }: GroupProps) {
  return (
    <>
      <h2>{title}</h2>
      <ul>
        {reports.map((report) => (
          <li key={report.name}>
            <button
              type="button"
              class="report-choice"
              aria-current={report.name === shown ? "true" : undefined}
              title={report.question}
              data-testid={`report-${report.name}`}
              onClick={() => onPick(report.name)}
            >
              {report.title}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** What could not be had, and what did not fit into an answer. */
function Notes({ data }: { data: ReportPage }) {
  const growing = useContext(GrowingContext);
  const notes = [...data.notes];
  if (!growing && data.rows.length < data.total_rows) {
    notes.push(
      `These are the first ${formatInteger(data.rows.length)} of ${formatInteger(data.total_rows)} rows, the rest did not arrive: press Refresh, pick fewer iterations, or let "tb-dlprof report --reports ${data.name}" write them all.`,
    );
  }
  if (notes.length === 0) return null;
  return (
    <ul class="report-notes muted small" data-testid="report-notes">
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  );
}
