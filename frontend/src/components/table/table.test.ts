import { describe, expect, it } from "vitest";
import type { Column } from "./columns";
import { csvCell, csvName, toCsv } from "./csv";
import { numberFilter, textFilter } from "./filters";
import { choicesOf, createModel } from "./model";

interface Row {
  name: string;
  ns: number | null;
  using: string;
}

const COLUMNS: Column<Row>[] = [
  { id: "name", header: "Name", definition: "", value: (row) => row.name, width: "1px" },
  { id: "ns", header: "Time", definition: "", value: (row) => row.ns, unit: "ns", width: "1px" },
  { id: "using", header: "Using", definition: "", value: (row) => row.using, filter: "choice", width: "1px" },
];
const ROWS: Row[] = [
  { name: "conv", ns: 5_000_000, using: "yes" },
  { name: "relu", ns: null, using: "no" },
  { name: "linear", ns: 20_000, using: "unknown" },
  { name: "conv backward", ns: 9_000_000, using: "no" },
];
const names = (rows: Row[]): string[] => rows.map((row) => row.name);

describe("a table", () => {
  const model = createModel(COLUMNS);

  it("keeps the order of the rows until it is sorted", () => {
    expect(names(model(ROWS, { sorting: [], filters: [] }))).toEqual(["conv", "relu", "linear", "conv backward"]);
  });

  it("sorts unknown last in both directions", () => {
    expect(names(model(ROWS, { sorting: [{ id: "ns", desc: true }], filters: [] }))).toEqual(["conv backward", "conv", "linear", "relu"]);
    expect(names(model(ROWS, { sorting: [{ id: "ns", desc: false }], filters: [] }))).toEqual(["linear", "conv", "conv backward", "relu"]);
  });

  it("filters by every column at once", () => {
    const filters = [
      { id: "name", value: "conv" },
      { id: "ns", value: ">6ms" },
    ];
    expect(names(model(ROWS, { sorting: [], filters }))).toEqual(["conv backward"]);
    expect(names(model(ROWS, { sorting: [], filters: [{ id: "using", value: "unknown" }] }))).toEqual(["linear"]);
    expect(names(model(ROWS, { sorting: [], filters: [] }))).toHaveLength(4);
  });

  it("offers the values that occur", () => {
    expect(choicesOf(COLUMNS[2]!, ROWS)).toEqual(["no", "unknown", "yes"]);
  });
});

describe("a filter", () => {
  it("compares numbers in the unit that was typed", () => {
    expect(numberFilter("<1ms", "ns")(20_000)).toBe(true);
    expect(numberFilter("10us..30us", "ns")(20_000)).toBe(true);
    expect(numberFilter(">=50", "percent")(49.9)).toBe(false);
    expect(numberFilter(">1MiB", "bytes")(2 ** 21)).toBe(true);
  });

  it("finds unknown only by its name", () => {
    expect(numberFilter("<1ms", "ns")(null)).toBe(false);
    expect(numberFilter("unknown", "ns")(null)).toBe(true);
  });

  it("hides nothing while half a comparison is typed", () => {
    expect(numberFilter(">", "ns")(1)).toBe(true);
  });

  it("wants every word", () => {
    expect(textFilter("back conv")("conv backward")).toBe(true);
    expect(textFilter("back relu")("conv backward")).toBe(false);
  });
});

describe("CSV", () => {
  it("quotes what a spreadsheet would run", () => {
    expect(["=1+1", "+1", "-1", "@x", "\tx"].map(csvCell)).toEqual(["'=1+1", "'+1", "'-1", "'@x", "'\tx"]);
    expect(csvCell('=a,"b"')).toBe(`"'=a,""b"""`);
    expect(csvCell(-5)).toBe("-5");
  });

  it("keeps unknown empty and numbers exact", () => {
    expect(toCsv(COLUMNS, ROWS.slice(0, 2))).toBe("Name,Time (ns),Using\r\nconv,5000000,yes\r\nrelu,,no\r\n");
  });

  it("makes a plain file name", () => {
    expect(csvName("dlprof", "ops ../resnet50/fp32")).toBe("dlprof-ops_.._resnet50_fp32.csv");
  });
});
