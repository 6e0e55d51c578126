/** Copies text. The clipboard API is refused in some notebook iframes; a selected text area still works there. */
import { useState } from "preact/hooks";

export async function copyText(text: string): Promise<boolean> {
  return (await byClipboard(text)) || bySelection(text);
}

async function byClipboard(text: string): Promise<boolean> {
  // Chromium logs an error for each attempt in a frame whose policy refuses it; others do not say beforehand.
  const { featurePolicy } = document as { featurePolicy?: { allowsFeature(name: string): boolean } };
  if (featurePolicy?.allowsFeature("clipboard-write") === false) return false;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function bySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  area.style.opacity = "0";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

const REPORT_MS = 1600;

export function CopyButton({ text, label = "Copy", tip }: { text: () => string; label?: string; tip?: string }) {
  const [report, setReport] = useState("");
  const copy = async (): Promise<void> => {
    setReport((await copyText(text())) ? "Copied" : "Not allowed here");
    setTimeout(() => setReport(""), REPORT_MS);
  };
  return (
    <button type="button" class="button button-small" data-tip={tip} onClick={copy}>
      <span aria-live="polite">{report || label}</span>
    </button>
  );
}
