/** The menu of what can be taken out of the page: reports as tables, all pages in one file. */
import { useEffect, useRef, useState } from "preact/hooks";
import { readPageFile } from "../api/pageFile";
import { profileQuery } from "../api/queries";
import type { ReportEntry, RunIndex } from "../api/types";
import { useConnection, useFile, useResource } from "../api/useResource";
import { CodeBlock } from "../components/CodeBlock";
import { ErrorMessage } from "../components/Message";
import { Popover } from "../components/Popover";
import { saveBlob } from "../components/saveBlob";
import { formatBytes } from "../format/number";
import type { ProfileChoice } from "../state/profile";
import { goTo } from "../state/navigate";
import { useParam } from "../state/param";
import { pageParam, profileParam } from "../state/sharedParams";
import { comparedSides } from "../views/compare/params";
import { toReport } from "../views/reports/params";

export function ExportMenu({ index }: { index: RunIndex }) {
  const page = useParam(pageParam);
  return (
    <Popover face="Export" label="Export" testId="export" value={page}>
      {(close) => <Menu index={index} onClose={close} />}
    </Popover>
  );
}

function Menu({ index, onClose }: { index: RunIndex; onClose: () => void }) {
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
          <PageFile index={index} />
          <CodeBlock code={exportCommand(index)} label="Command" />
          <h3>All reports as Parquet files, or CSV and JSON</h3>
          <CodeBlock code={reportCommand(index)} label="Command for tables" />
          <p class="muted small">Parquet needs pyarrow: pip install pyarrow.</p>
        </>
      )}
    </div>
  );
}

/** Saves the run or the pair that is shown. */
function PageFile({ index }: { index: RunIndex }) {
  const { client } = useConnection();
  const [bytes, setBytes] = useState<number | null>(null);
  const [report, setReport] = useState("");
  const controller = useRef<AbortController | null>(null);
  useEffect(() => () => controller.current?.abort(), []);
  const shown = shownRuns(index);
  if (shown.length === 0) return null;
  const save = async (): Promise<void> => {
    const { signal } = (controller.current = new AbortController());
    setReport("");
    setBytes(0);
    try {
      const blob = await readPageFile(
        client,
        { ...profileQuery(shown[0]!, null), other: shown[1]?.run ?? null },
        setBytes,
        signal,
      );
      saveBlob(
        `${namesOf(shown)
          .join("-")
          .replace(/[^\w.-]+/g, "-")}.html`,
        blob,
      );
      setReport("Saved.");
    } catch (error) {
      setReport(signal.aborted ? "" : error instanceof Error ? error.message : String(error));
    }
    setBytes(null);
  };
  return (
    <p class="export-file">
      <button
        type="button"
        class="button"
        disabled={bytes !== null}
        data-testid="save-page-file"
        onClick={() => void save()}
      >
        Save as HTML
      </button>
      <span class="muted small" role="status" data-testid="page-file-report">
        {bytes === null ? report : bytes === 0 ? "Computing all pages …" : formatBytes(bytes)}
      </span>
    </p>
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

/** The run or the pair that is shown. */
function shownRuns({ runs }: RunIndex): ProfileChoice[] {
  const sides = pageParam.value === "compare" ? Object.values(comparedSides(runs)) : [profileParam.value];
  return sides.filter(({ run }) => run !== null);
}

const namesOf = (shown: readonly ProfileChoice[]): string[] => shown.map(({ run }) => String(run));

/** What writes the run or the pair that is shown. */
const exportCommand = (index: RunIndex): string =>
  `tb-dlprof export ${namesOf(shownRuns(index))
    .map((run) => pathOf(index.logdir, run))
    .join(" ")} --html profile.html`;

const reportCommand = (index: RunIndex): string =>
  `tb-dlprof report ${pathOf(index.logdir, namesOf(shownRuns(index))[0] ?? "RUN")} --formats parquet --output-path tables`;
