/** An exported file's own parts of the page: light or dark, in the place of Refresh, and what the file is, at its end. */
import type { FileFacts } from "../api/source";
import { useFile } from "../api/useResource";
import { preferTheme, themeSignal } from "../state/theme";

export function ThemeButton() {
  const other = themeSignal.value === "dark" ? "light" : "dark";
  return (
    <button
      type="button"
      class="button"
      data-testid="theme"
      aria-label={`Change to ${other} colours`}
      title={`Change to ${other} colours`}
      onClick={() => preferTheme(other)}
    >
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.6" />
        <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />
      </svg>
    </button>
  );
}

export function AboutFile() {
  const file = useFile();
  return file && <Said file={file} />;
}

function Said({ file }: { file: FileFacts }) {
  return (
    <footer class="about-file muted small" data-testid="about-file">
      {file.title}: a file that tb-dlprof {file.version} made on {file.made.slice(0, 16).replace("T", " at ")}. It holds
      the whole of each recording and loads nothing from elsewhere; other iterations, key nodes and batch sizes take the
      runs themselves, in TensorBoard.
    </footer>
  );
}
