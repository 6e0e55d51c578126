import { render } from "preact";
import { act } from "preact/test-utils";
import { describe, expect, it } from "vitest";
import { toCsv, toJson } from "./export/formats";
import { columnsPerStep, SumsContext } from "./sums";
import type { Column } from "./table/columns";
import { createModel } from "./table/model";
import { Sum } from "./Value";

interface Row {
  name: string;
  ns: number | null;
  calls: number;
}

const COLUMNS: Column<Row>[] = [
  { id: "name", header: "Op", definition: "", value: (row) => row.name, width: "1px" },
  { id: "time", header: "Time", definition: "", value: (row) => row.ns, unit: "ns", sums: true, width: "1px" },
  { id: "calls", header: "Calls", definition: "", value: (row) => row.calls, unit: "count", sums: true, width: "1px" },
  { id: "max", header: "Max", definition: "", value: (row) => row.ns, unit: "ns", width: "1px" },
];
const ROWS: Row[] = [
  { name: "conv", ns: 20_000_000, calls: 40 },
  { name: "cat", ns: null, calls: 3 },
];

const text = (value: number | null, unit: "ns" | "count", iterations: number): string => {
  const root = document.createElement("div");
  act(() =>
    render(
      <SumsContext.Provider value={iterations}>
        <Sum value={value} unit={unit} />
      </SumsContext.Provider>,
      root,
    ),
  );
  return root.textContent ?? "";
};

describe("sums over the iterations", () => {
  it("are divided, and nothing else is", () => {
    const columns = columnsPerStep(COLUMNS, 10);
    expect(ROWS.map((row) => columns.map((column) => column.value(row)))).toEqual([
      ["conv", 2_000_000, 4, 20_000_000],
      ["cat", null, 0.3, null],
    ]);
    expect(columnsPerStep(COLUMNS, 1)).toBe(COLUMNS);
  });

  it("are filtered as they are shown", () => {
    const shown = (iterations: number, query: string): string[] =>
      createModel(columnsPerStep(COLUMNS, iterations), ROWS)
        .shown({ sorting: null, filters: [{ id: "time", query }] })
        .map((row) => row.name);
    expect(shown(10, ">5ms")).toEqual([]);
    expect(shown(1, ">5ms")).toEqual(["conv"]);
    expect(shown(10, "1ms..3ms")).toEqual(["conv"]);
  });

  it("are saved as they are shown, and the heading says so", () => {
    const columns = columnsPerStep(COLUMNS, 10);
    expect(toCsv(columns, ROWS).split("\r\n").slice(0, 2)).toEqual([
      "Op,Time per step (ns),Calls per step,Max (ns)",
      "conv,2000000,4,20000000",
    ]);
    expect(JSON.parse(toJson(columns, ROWS))[1]).toEqual({
      op: "cat",
      time_per_step_ns: null,
      calls_per_step: 0.3,
      max_ns: null,
    });
    expect(toCsv(COLUMNS, ROWS)).toContain("Op,Time (ns),Calls,Max (ns)");
  });

  it("are integers where they divide, else have one decimal", () => {
    expect([40, 43, 1, null].map((calls) => text(calls, "count", 10))).toEqual(["4", "4.3", "0.1", "unknown"]);
    expect(text(1, "count", 30)).toBe("<0.1");
    expect([text(20_000_000, "ns", 10), text(20_000_000, "ns", 1)]).toEqual(["2.00 ms", "20.0 ms"]);
  });
});
