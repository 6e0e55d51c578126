import { describe, expect, it } from "vitest";
import { tableColumns, type Declared } from "./declared";

interface Row {
  name: string;
  step_ms: number;
  busy_percent: number | null;
  eligible_ns: number;
  kernels: string[];
}
const NAME = { definition: "", width: "90px" };
const DECLARED: Declared<Row>[] = [
  { ...NAME, id: "name", header: "Op", absent: ["eligible_ns", "0"] },
  { ...NAME, id: "step_ms", header: "Step", unit: "ns", scale: 1e6, tasks: ["cpu"] },
  { ...NAME, id: "busy_percent", header: "Busy", unit: "percent", gpu: true, absent: ["eligible_ns", "0"] },
  { ...NAME, id: "kernels", header: "Kernels" },
];
const ROW: Row = { name: "", step_ms: 1.0000004, busy_percent: null, eligible_ns: 0, kernels: ["a", "b"] };

describe("a declared column", () => {
  it("has the value of its field in its unit", () => {
    const columns = tableColumns(DECLARED);
    expect(columns.map(({ value }) => value(ROW))).toEqual(["–", 1_000_000, null, "a, b"]);
    expect(columns[0]!.value({ ...ROW, eligible_ns: 5 })).toBeNull();
    expect(columns[2]!.cell!(ROW)).toBeDefined();
    expect(columns[2]!.cell!({ ...ROW, eligible_ns: 5 })).toBeUndefined();
  });

  it("is changed or left out by a page; without a GPU the time is that of the CPU", () => {
    const columns = tableColumns(DECLARED, { kernels: null, name: { header: "Name" } }, false);
    expect(columns.map(({ header, tasks }) => [header, tasks])).toEqual([
      ["Name", undefined],
      ["Step", ["time", "cpu"]],
    ]);
  });
});
