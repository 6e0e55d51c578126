/** A small button that unfolds the downloads: the files, the clipboard and, of drawings, the picture and the table. */
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { usePopover } from "../usePopover";
import { copyText } from "../CopyButton";
import { saveBlob } from "../saveBlob";
import { fileName, saveCsv, saveJson } from "./save";
import type { Download } from "./slot";

const LEAST_MARGIN = 8;

/** `downloads` is asked when the menu unfolds, so that it holds what is shown then. */
export function DownloadMenu({ downloads }: { downloads: () => Download[] }) {
  const { open, setOpen, box, onKeyDown } = usePopover<HTMLDivElement>(".download-button");
  const panel = useRef<HTMLDivElement>(null);
  const id = useId();

  // It hangs from its button's right edge, unless that would push it out of the page on the left.
  useLayoutEffect(() => {
    if (!open || !panel.current) return;
    panel.current.style.right = "0";
    panel.current.style.right = `${Math.min(0, panel.current.getBoundingClientRect().left - LEAST_MARGIN)}px`;
  }, [open]);

  return (
    <div class="download" ref={box} onKeyDown={onKeyDown}>
      <button
        type="button"
        class="download-button"
        aria-label="Save or copy"
        aria-expanded={open}
        aria-controls={id}
        title="Save or copy"
        data-testid="download"
        onClick={() => setOpen(!open)}
      >
        <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
          <path
            d="M8 1.5v8M4.7 6.4 8 9.7l3.3-3.3M2.5 11v3h11v-3"
            fill="none"
            stroke="currentColor"
            stroke-width="1.5"
          />
        </svg>
      </button>
      <div id={id} class="download-panel" ref={panel} hidden={!open}>
        {open &&
          downloads().map((download) => (
            <Group key={download.name} download={download} onDone={() => setOpen(false)} />
          ))}
      </div>
    </div>
  );
}

const REPORT_MS = 1600;

function Group({ download, onDone }: { download: Download; onDone: () => void }) {
  const { name, file = name, png, table } = download;
  const [report, setReport] = useState("");
  const tell = (text: string): void => {
    setReport(text);
    setTimeout(() => setReport(""), REPORT_MS);
  };
  const draw = async (use: (picture: () => Promise<Blob>) => Promise<void> | void, done: string): Promise<void> => {
    try {
      await use(png!);
      tell(done);
    } catch {
      tell("This browser cannot do that here");
    }
  };
  return (
    <div class="download-group" role="group" aria-label={name}>
      <p>
        {name}{" "}
        <span class="muted" role="status">
          {report}
        </span>
      </p>
      {png && (
        <button
          type="button"
          class="button button-small"
          data-testid="save-png"
          onClick={() => draw(async (picture) => saveBlob(fileName(file, "png"), await picture()), "Saved")}
        >
          Save PNG
        </button>
      )}
      {png && typeof ClipboardItem !== "undefined" && navigator.clipboard && (
        <button
          type="button"
          class="button button-small"
          data-testid="copy-png"
          onClick={() =>
            draw((picture) => navigator.clipboard.write([new ClipboardItem({ "image/png": picture() })]), "Copied")
          }
        >
          Copy picture
        </button>
      )}
      <button
        type="button"
        class="button button-small"
        data-testid="save-csv"
        onClick={() => saveCsv(file, download.csv())}
      >
        CSV
      </button>
      <button
        type="button"
        class="button button-small"
        data-testid="save-json"
        onClick={() => saveJson(file, download.json())}
      >
        JSON
      </button>
      <button
        type="button"
        class="button button-small"
        data-testid="copy-table"
        onClick={async () => tell((await copyText(download.tsv())) ? "Copied" : "Not allowed here")}
      >
        Copy values
      </button>
      {table && (
        <button
          type="button"
          class="button button-small"
          data-testid="show-table"
          aria-pressed={table.shown}
          onClick={() => {
            table.show(!table.shown);
            onDone();
          }}
        >
          {table.shown ? "Hide table" : "Show as table"}
        </button>
      )}
    </div>
  );
}
