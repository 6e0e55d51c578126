/** The palette: told apart by everybody, readable on every surface of both themes, one meaning a colour. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { contrast, difference, lightnessChromaHue, VISIONS } from "../testing/colourVision";
import { ACCOUNT, BY_CONTEXT, CATEGORIES, PARTS, PRECISIONS, SERIES } from "./colours";

const CSS = readFileSync("src/styles/theme.css", "utf-8");
const THEMES = { light: block(":root {"), dark: { ...block(":root {"), ...block(':root[data-theme="dark"] {') } };
const SURFACES = ["--page", "--surface", "--surface-2"];

/** Stacks whose order is fixed, and sets of which any two may lie side by side. */
const STACKS = {
  categories: Object.values(CATEGORIES),
  parts: Object.values(PARTS),
  job: Object.values(BY_CONTEXT["job"]!),
  memory: [
    "before",
    "parameters",
    "buffers",
    "optimizer_state",
    "gradients",
    "activations",
    "casts",
    "activation_gradients",
    "temporary",
    "workspaces",
    "communication",
    "other",
  ].map((key) => BY_CONTEXT["memory"]![key]!),
  gaps: Object.values(BY_CONTEXT["gap_kind"]!),
  idle: [...["dataloader", "cpu_launch", "python", "idle"].map((key) => ACCOUNT[key]!), "--c-recorder"],
};

function block(start: string): Record<string, string> {
  const from = CSS.indexOf(start);
  const text = CSS.slice(from, CSS.indexOf("\n}", from));
  return Object.fromEntries([...text.matchAll(/(--[\w-]+): (#[0-9a-f]{6});/g)].map((match) => [match[1]!, match[2]!]));
}

function least(
  properties: readonly string[],
  colours: Record<string, string>,
  vision: string,
  neighbours: boolean,
): number {
  let found = Number.POSITIVE_INFINITY;
  properties.forEach((one, index) => {
    for (const other of neighbours ? properties.slice(index + 1, index + 2) : properties.slice(index + 1))
      if (other !== one) found = Math.min(found, difference(colours[one]!, colours[other]!, vision));
  });
  return found;
}

describe.each(Object.entries(THEMES))("%s", (_, colours) => {
  const marks = Object.keys(colours).filter((name) => name.startsWith("--c-"));

  it("gives every mark a contrast of 3 to 1 on every surface; idle time is the empty rest of a ring", () => {
    for (const mark of marks.filter((name) => name !== "--c-idle"))
      for (const surface of SURFACES)
        expect(contrast(colours[mark]!, colours[surface]!), `${mark} on ${surface}`).toBeGreaterThanOrEqual(3);
    expect(contrast(colours["--c-idle"]!, colours["--c-busy"]!)).toBeGreaterThanOrEqual(3);
  });

  it("has no brown, olive or hot pink, which look like an accident next to the others", () => {
    const kind = ([lightness, chroma, hue]: readonly [number, number, number]): string => {
      if (hue >= 38 && hue < 78 && lightness < 66 && chroma > 12 && (chroma < 62 || lightness < 42)) return "brown";
      if (hue >= 78 && hue <= 122 && lightness < 66 && chroma > 14) return "olive";
      return (hue >= 330 || hue <= 14) && chroma > 52 && lightness > 42 ? "hot pink" : "";
    };
    const accidents = marks.map((mark) => [mark, kind(lightnessChromaHue(colours[mark]!))]).filter(([, is]) => is);
    expect(accidents).toEqual([]);
  });

  it("gives every text a contrast of 4.5 to 1 on every surface", () => {
    const grounds = [...SURFACES, "--accent-soft", "--warn-bg", "--error-bg"];
    for (const ground of grounds) {
      expect(contrast(colours["--text"]!, colours[ground]!), ground).toBeGreaterThanOrEqual(4.5);
      expect(contrast(colours["--muted"]!, colours[ground]!), `muted on ${ground}`).toBeGreaterThanOrEqual(4.5);
    }
    for (const text of ["--accent", "--good", "--bad"])
      for (const ground of SURFACES)
        expect(contrast(colours[text]!, colours[ground]!), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5);
  });

  it.each(Object.keys(VISIONS))("keeps the ends of the icicle's scale apart under %s", (vision) => {
    expect(difference(colours["--c-tensor-core"]!, colours["--warn-line"]!, vision)).toBeGreaterThanOrEqual(20);
  });

  it.each(Object.keys(VISIONS))("keeps neighbours apart under %s", (vision) => {
    for (const [name, stack] of Object.entries(STACKS)) {
      // The causes of idle time have the colours of the account, whose order is that of its meaning.
      const limit = name === "idle" ? 6 : 9;
      expect(least(stack, colours, vision, true), `neighbours in ${name}`).toBeGreaterThanOrEqual(limit);
      // Of memory there are twelve, each with its name next to it, and any two that can touch are neighbours here.
      const apart = name === "memory" ? 4 : 6;
      expect(least(stack, colours, vision, false), `all in ${name}`).toBeGreaterThanOrEqual(apart);
    }
    // Ordered by their time, so that any two can be neighbours.
    expect(
      least(
        ["fp16", "bf16", "tf32", "fp8", "fp32"].map((key) => PRECISIONS[key]!),
        colours,
        vision,
        false,
      ),
      "precisions",
    ).toBeGreaterThanOrEqual(8);
    expect(
      least(
        ["fp16", "bf16", "tf32", "fp8", "none"].map((key) => BY_CONTEXT["by_precision"]![key]!),
        colours,
        vision,
        false,
      ),
      "on Tensor Cores",
    ).toBeGreaterThanOrEqual(6);
    expect(
      least([...Object.values(PRECISIONS), "--c-unknown"], colours, vision, false),
      "rare precisions",
    ).toBeGreaterThanOrEqual(5);
    // What takes no time is not drawn, so that any two can be neighbours.
    expect(least(Object.values(ACCOUNT), colours, vision, false), "account").toBeGreaterThanOrEqual(6);
    expect(
      least([...new Set(Object.values(BY_CONTEXT["family"]!))], colours, vision, false),
      "families",
    ).toBeGreaterThanOrEqual(4);
  });
});

it("gives what a step consists of, its parts, each category and each precision a colour of its own", () => {
  const own = [...new Set([CATEGORIES, ACCOUNT, PARTS, PRECISIONS].flatMap((colours) => Object.values(colours)))];
  for (const colours of Object.values(THEMES)) expect(new Set(own.map((name) => colours[name])).size).toBe(own.length);
  expect(SERIES.filter((name) => own.includes(name))).toEqual([]);
  // A category's colour elsewhere stands for what lies in that category.
  const same: Record<string, string[]> = {
    "--c-tensor-core": ["account.tensor_core", "tensor_core_efficiency.using"],
    "--c-other-kernels": ["tensor_core_efficiency.not_using", "by_precision.none", "account.other_compute"],
    "--c-cpu": ["timeline.launch", "timeline.idle_cpu_launch", "account.cpu_launch"],
    "--c-memory": ["timeline.copy", "account.copies", "family.copy", "family.set"],
    "--c-dataloader": ["parts.dataloader", "account.dataloader", "timeline.idle_dataloader"],
    "--c-other": [
      "memory.before",
      "parts.other",
      "account.idle",
      "account.other",
      "timeline.idle_other",
      "family.other",
    ],
  };
  for (const [context, keys] of Object.entries(BY_CONTEXT))
    for (const [key, property] of Object.entries(keys))
      if (Object.values(CATEGORIES).includes(property))
        expect(same[property], `${context}.${key}`).toContain(`${context}.${key}`);
  // Those of a step and of its parts stand for nothing else at all.
  const alone = [...Object.values(ACCOUNT), ...Object.values(PARTS)].filter(
    (property) => !Object.values(CATEGORIES).includes(property),
  );
  for (const [context, keys] of Object.entries(BY_CONTEXT))
    for (const [key, property] of Object.entries(keys))
      if (alone.includes(property))
        expect({ ...ACCOUNT, ...PARTS }[key.replace(/^idle_/, "")], `${context}.${key}`).toBe(property);
});
