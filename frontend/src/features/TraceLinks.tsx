/**
 * The trace behind the chosen profile, for other tools: opened in Perfetto, saved, shown in the PyTorch Profiler tab, or found by
 * its path. Asks for it itself, so that any page can place it.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { PYTORCH_TAB, usePytorchTab } from "../api/pytorchTab";
import { profileQuery } from "../api/queries";
import { readTrace } from "../api/trace";
import type { PytorchTab, TraceFile, TraceLinks as Links } from "../api/types";
import { useConnection, useFile, useResource } from "../api/useResource";
import { formatBytes } from "../format/number";
import { openTab } from "../state/hash";
import { tensorBoardWindow } from "../state/tensorboard";
import { Card } from "../components/Card";
import { CopyButton } from "../components/CopyButton";
import { openPerfetto, sendToPerfetto } from "../components/perfetto";
import { saveBlob } from "../components/saveBlob";
import { profileParam } from "../state/sharedParams";

export function TraceLinks() {
  const profile = profileParam.value;
  const query = { ...profileQuery(profile, null), key_node: null };
  // An exported file goes to people who have no trace.
  const resource = useResource("trace_links", useFile() ? null : query, Object.values(query).join(" "));
  if (!resource.data && !resource.error) return null;
  return (
    <Card title="Raw trace" testId="trace-links" class="trace-links">
      {resource.error ? <p class="muted">{resource.error.message}</p> : <Found links={resource.data!} />}
    </Card>
  );
}

function Found({ links }: { links: Links }) {
  const [picked, setPicked] = useState<string | null>(null);
  const { files, missing, pytorch_tab: tab } = links;
  const file = files.find((one) => one.name === picked) ?? files[0];
  return (
    <>
      {missing && <p class="muted">{missing}</p>}
      {files.length > 1 && (
        <label class="picker picker-wide">
          Trace
          <select
            value={file?.name}
            onChange={(event) => setPicked(event.currentTarget.value)}
            data-testid="trace-file"
          >
            {files.map((one) => (
              <option key={one.name} value={one.name}>
                {describe(one)}
              </option>
            ))}
          </select>
        </label>
      )}
      {file && <Actions key={`${links.ref.run} ${file.name} ${file.version}`} links={links} file={file} />}
      {tab && <TabLink key={tab.run} tab={tab} />}
    </>
  );
}

const describe = (file: TraceFile): string =>
  `${file.of_profile ? "" : "another recording, "}${file.copy ? "copy for the PyTorch Profiler tab" : "as torch wrote it"}: ${file.name}`;

/** What is being read, and how far it is. */
interface Reading {
  what: "perfetto" | "save";
  bytes: number;
}

function Actions({ links, file }: { links: Links; file: TraceFile }) {
  const { client } = useConnection();
  const [reading, setReading] = useState<Reading | null>(null);
  const [report, setReport] = useState("");
  const controller = useRef<AbortController | null>(null);
  useEffect(() => () => controller.current?.abort(), []);

  const read = async (
    what: Reading["what"],
    use: (buffer: ArrayBuffer, signal: AbortSignal) => Promise<string>,
  ): Promise<void> => {
    const { signal } = (controller.current = new AbortController());
    setReport("");
    setReading({ what, bytes: 0 });
    try {
      const { run, session, rank, cycle } = links.ref;
      const buffer = await readTrace(
        client,
        { run, session, rank, cycle },
        file,
        (bytes) => setReading({ what, bytes }),
        signal,
      );
      setReport(await use(buffer, signal));
    } catch (error) {
      setReport(signal.aborted ? "" : error instanceof Error ? error.message : String(error));
    }
    setReading(null);
  };
  const fileName = file.name.slice(file.name.lastIndexOf("/") + 1);
  const perfetto = (): void => {
    const opened = openPerfetto();
    if (!opened) {
      setReport(
        "The browser blocked the window. Allow pop-ups for this page, or save the trace and open it at ui.perfetto.dev.",
      );
      return;
    }
    void read("perfetto", async (buffer, signal) => {
      await sendToPerfetto(opened, buffer, `${links.ref.run} rank ${links.ref.rank}`, fileName, signal);
      return "Opened in the Perfetto window.";
    });
  };
  const save = (): void =>
    void read("save", async (buffer) => {
      saveBlob(fileName, new Blob([buffer], { type: "application/octet-stream" }));
      return "Saved.";
    });

  return (
    <>
      <p class="trace-actions">
        <button type="button" class="button" disabled={reading !== null} onClick={perfetto} data-testid="open-perfetto">
          Open in Perfetto
        </button>
        <button type="button" class="button" disabled={reading !== null} onClick={save} data-testid="save-trace">
          Save trace ({formatBytes(file.size_bytes)})
        </button>
        {reading && (
          <>
            <progress value={reading.bytes} max={file.size_bytes} aria-label="Reading the trace" />
            <button type="button" class="button button-small" onClick={() => controller.current?.abort()}>
              Cancel
            </button>
          </>
        )}
        <span class="small" role="status" data-testid="trace-report">
          {reading ? `${formatBytes(reading.bytes)} of ${formatBytes(file.size_bytes)}` : report}
        </span>
      </p>
      <p class="trace-path">
        <code>{file.path}</code> <CopyButton text={() => file.path} label="Copy path" />
      </p>
      <p class="muted small">
        Perfetto opens at ui.perfetto.dev in another window; the trace goes there inside this browser. Nothing is
        uploaded.
      </p>
    </>
  );
}

function TabLink({ tab }: { tab: PytorchTab }) {
  // By itself, in a notebook's cell or in `tb-dlprof view`, this page has no other tabs.
  const state = usePytorchTab(tensorBoardWindow() ? tab.run : null);
  if (state === "absent") return null;
  const span = tab.span === null ? "" : `, span ${tab.span}`;
  return (
    <p class="trace-actions" data-testid="pytorch-tab">
      <button type="button" class="button" onClick={() => openTab(PYTORCH_TAB)}>
        PyTorch Profiler tab
      </button>
      <span class="small">
        {state === "loading" && "It is still reading its files. "}
        Choose run <code>{tab.run}</code>, worker <code>{tab.worker}</code>
        {span} there.
        {tab.reads === "original" && (
          <>
            {" "}
            <strong>Its device times and steps will be wrong</strong>: it does not understand the trace as torch writes
            it. <code>{tab.remedy}</code> makes one that it does.
          </>
        )}
      </span>
    </p>
  );
}
