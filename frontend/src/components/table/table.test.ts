import { describe, expect, it } from "vitest";
import type { Column } from "./columns";
import { formatUnit, type Unit } from "../../format/unit";
import { numberFilter, textFilter } from "./filters";
import { createModel, type TableState } from "./model";

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

const show = (sorting: TableState["sorting"], ...filters: TableState["filters"]): string[] =>
  names(createModel(COLUMNS, ROWS).shown({ sorting, filters }));

describe("a table", () => {
  it("keeps the order of the rows until it is sorted", () => {
    expect(show(null)).toEqual(["conv", "relu", "linear", "conv backward"]);
  });

  it("sorts unknown last in both directions", () => {
    expect(show({ id: "ns", desc: true })).toEqual(["conv backward", "conv", "linear", "relu"]);
    expect(show({ id: "ns", desc: false })).toEqual(["linear", "conv", "conv backward", "relu"]);
  });

  it("sorts names as people count, and leaves equal rows in their order", () => {
    const rows = ["conv10", "Conv2", "conv2", "conv1 b", "conv1"].map((name, place) => ({
      name,
      ns: place,
      using: "",
    }));
    const model = createModel(COLUMNS, rows);
    expect(names(model.shown({ sorting: { id: "name", desc: false }, filters: [] }))).toEqual([
      "conv1",
      "conv1 b",
      "Conv2",
      "conv2",
      "conv10",
    ]);
    expect(names(model.shown({ sorting: { id: "using", desc: true }, filters: [] }))).toEqual(names(rows));
  });

  it("filters by every column at once", () => {
    expect(show(null, { id: "name", query: "conv" }, { id: "ns", query: ">6ms" })).toEqual(["conv backward"]);
    expect(show(null, { id: "using", query: "unknown" })).toEqual(["linear"]);
    expect(show({ id: "name", desc: true }, { id: "ns", query: "unknown" })).toEqual(["relu"]);
  });

  it("offers the values that occur", () => {
    expect(createModel(COLUMNS, ROWS).choicesOf("using")).toEqual(["no", "unknown", "yes"]);
  });

  it("gives what a plain sort and filter of 100,000 rows give", () => {
    const rows = Array.from({ length: 100_000 }, (_, at) => ({
      name: `op ${(at * 7919) % 977}`,
      ns: at % 17 === 0 ? null : (at * 104_729) % 50_021,
      using: "",
    }));
    const model = createModel(COLUMNS, rows);
    while (model.prepare());
    const found = model.shown({
      sorting: { id: "ns", desc: true },
      filters: [
        { id: "name", query: "op 12" },
        { id: "ns", query: ">10us" },
      ],
    });
    const wanted = rows.filter((row) => row.name.includes("12") && row.ns !== null && row.ns > 10_000);
    wanted.sort((a, b) => b.ns! - a.ns!);
    expect(found).toEqual(wanted);
  });
});

describe("a filter", () => {
  const accepts = (query: string, unit: Unit, value: number | null): boolean =>
    numberFilter(query, unit).accepts(value, formatUnit(value, unit));

  it("compares numbers in the unit that was typed", () => {
    expect(accepts("<1ms", "ns", 20_000)).toBe(true);
    expect(accepts("10us..30us", "ns", 20_000)).toBe(true);
    expect(accepts(">=50", "percent", 49.9)).toBe(false);
    for (const [text, bytes] of [
      ["512", 512],
      ["512b", 512],
      ["1.5k", 1536],
      ["1MiB", 2 ** 20],
      ["2 GB", 2 ** 31],
    ] as const) {
      expect([accepts(`>=${text}`, "bytes", bytes), accepts(`>${text}`, "bytes", bytes)]).toEqual([true, false]);
    }
  });

  it("finds unknown only by its name", () => {
    expect(accepts("<1ms", "ns", null)).toBe(false);
    expect(accepts("unknown", "ns", null)).toBe(true);
  });

  it("hides nothing while half a comparison is typed", () => {
    expect(accepts(">", "ns", 1)).toBe(true);
  });

  it("wants every word", () => {
    expect(textFilter("back conv").accepts("conv backward", "conv backward")).toBe(true);
    expect(textFilter("back relu").accepts("conv backward", "conv backward")).toBe(false);
  });
});
