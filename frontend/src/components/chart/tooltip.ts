/** Lines in, an element for ECharts' tooltip out: built from text nodes, because ECharts takes strings for HTML. */
import type { Colour } from "./Chart";

export interface TooltipLine {
  colour?: string;
  label: string;
  value: string;
}

/** `note` is a sentence below the lines. */
export function tooltipElement(title: string, lines: readonly TooltipLine[], note = ""): HTMLElement {
  const root = document.createElement("div");
  const head = document.createElement("strong");
  head.textContent = title;
  root.append(head);
  for (const line of lines) {
    const row = document.createElement("div");
    row.className = "chart-tip-row";
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = line.colour ?? "transparent";
    const label = document.createElement("span");
    label.textContent = line.label;
    const value = document.createElement("span");
    value.className = "chart-tip-value";
    value.textContent = line.value;
    row.append(swatch, label, value);
    root.append(row);
  }
  if (note) {
    const below = document.createElement("div");
    below.className = "chart-tip-note";
    below.textContent = note;
    root.append(below);
  }
  return root;
}

/** How every tooltip looks. */
export function tooltipStyle(colour: Colour) {
  return {
    confine: true,
    backgroundColor: colour("--surface"),
    borderColor: colour("--line"),
    textStyle: { color: colour("--text"), fontSize: 12, fontFamily: "inherit" },
  };
}
