/** The menu of what can be taken out of the page: reports as tables, all pages in one file. */
import { profileQuery } from "../api/queries";
import type { ReportEntry } from "../api/types";
import { useFile, useResource } from "../api/useResource";
import { CodeBlock } from "../components/CodeBlock";
import { ErrorMessage } from "../components/Message";
import { Popover } from "../components/Popover";
import { goTo } from "../state/navigate";
import { useParam } from "../state/param";
import { pageParam, profileParam } from "../state/sharedParams";
import { baseParam, candidateParam } from "../views/compare/params";
import { toReport } from "../views/reports/params";

export function ExportMenu({ logdir }: { logdir: string }) {
  const page = useParam(pageParam);
  return (
    <Popover face="Export" label="Export" testId="export" value={page}>
      {(close) => <Menu logdir={logdir} onClose={close} />}
    </Popover>
  );
}

function Menu({ logdir, onClose }: { logdir: string; onClose: () => void }) {
  const inFile = useFile() !== null;
  const { data, error, retry } = useResource(
    "report",
    { ...profileQuery(profileParam.value, null), name: "summary" },
    String(profileParam.value.run),
  );
  const pick = (name: string): void => {
    onClose();
    goTo("reports", ...toReport(name));
  };
  const dlprof = data?.reports.filter((report) => report.of_dlprof) ?? [];
  const ours = data?.reports.filter((report) => !report.of_dlprof) ?? [];
  return (
    <div class="export-menu">
      {error && <ErrorMessage text={error.message} onRetry={retry} old={false} />}
      <Group title="DLProf's reports" reports={dlprof} onPick={pick} />
      <Group title="Torch, CUDA and kernels" reports={ours} onPick={pick} />
      <p class="muted small">
        Each is a table to sort, filter and save as CSV or JSON. The menu of a chart saves it as PNG, too.
      </p>
      {!inFile && (
        <>
          <h3>All pages in one file that opens without a server</h3>
          <CodeBlock code={exportCommand(logdir)} label="Command" />
          <h3>All reports as Parquet files, or CSV and JSON</h3>
          <CodeBlock code={reportCommand(logdir)} label="Command for tables" />
          <p class="muted small">Parquet takes the extra: pip install 'tb_dlprof_plugin[parquet]'.</p>
        </>
      )}
    </div>
  );
}

function Group({ title, reports, onPick }: { title: string; reports: ReportEntry[]; onPick: (name: string) => void }) {
  if (reports.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul>
        {reports.map((report) => (
          <li key={report.name}>
            <button
              type="button"
              class="link"
              title={report.question}
              data-testid={`take-${report.name}`}
              onClick={() => onPick(report.name)}
            >
              {report.title}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** As a shell takes it. */
const quoted = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

/** Where a run lies: commands take paths, and a run's name is one below the logdir. */
const pathOf = (logdir: string, run: string): string =>
  quoted(logdir === "" ? run : `${logdir.replace(/\/$/, "")}/${run}`);

const shownRuns = (): string[] =>
  (pageParam.value === "compare" ? [baseParam.value.run, candidateParam.value.run] : [profileParam.value.run]).filter(
    (run) => run !== null,
  );

/** What writes the run or the pair that is shown. */
const exportCommand = (logdir: string): string =>
  `tb-dlprof export ${shownRuns()
    .map((run) => pathOf(logdir, run))
    .join(" ")} --html profile.html`;

const reportCommand = (logdir: string): string =>
  `tb-dlprof report ${pathOf(logdir, shownRuns()[0] ?? "RUN")} --formats parquet --output-path tables`;
