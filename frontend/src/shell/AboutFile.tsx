/** In an exported file, in the place of Refresh: light or dark, and what the file is. */
import type { FileFacts } from "../api/client";
import { useTheme } from "../state/ThemeContext";
import { preferTheme } from "../state/theme";

export function AboutFile({ file }: { file: FileFacts }) {
  const other = useTheme() === "dark" ? "light" : "dark";
  const made = file.made.slice(0, 16).replace("T", " ");
  return (
    <>
      <span
        class="about-file term muted small"
        tabIndex={0}
        data-testid="about-file"
        data-tip={`${file.title}: made by tb-dlprof ${file.version} on ${made}. The file holds the whole of each recording and loads nothing from elsewhere. Other iterations, key nodes and batch sizes take the runs themselves, in TensorBoard.`}
      >
        exported {made.slice(0, 10)}
      </span>
      <button type="button" class="button" data-testid="theme" onClick={() => preferTheme(other)}>
        {other === "dark" ? "Dark" : "Light"}
      </button>
    </>
  );
}
