import { describe, expect, it } from "vitest";
import type { Column } from "../table/columns";
import { csvCell, jsonKeys, toCsv, toJson, toTsv } from "./formats";
import { fileName } from "./save";

interface Row {
  name: string;
  ns: number | null;
}

const COLUMNS: Column<Row>[] = [
  { id: "name", header: "Name", definition: "", value: (row) => row.name, width: "1px" },
  { id: "ns", header: "GPU time", definition: "", value: (row) => row.ns, unit: "ns", width: "1px" },
];
const ROWS: Row[] = [
  { name: 'a "b", c', ns: 5_000_000 },
  { name: "=1+\t1", ns: null },
];

describe("what is downloaded of a table", () => {
  it("is quoted where a spreadsheet would run it", () => {
    expect(["=1+1", "+1", "-1", "@x", "\tx"].map(csvCell)).toEqual(["'=1+1", "'+1", "'-1", "'@x", "'\tx"]);
    expect(csvCell('=a,"b"')).toBe(`"'=a,""b"""`);
    expect(csvCell(-5)).toBe("-5");
  });

  it("keeps unknown empty and numbers exact in CSV", () => {
    expect(toCsv(COLUMNS, ROWS)).toBe('Name,GPU time (ns)\r\n"a ""b"", c",5000000\r\n\'=1+\t1,\r\n');
  });

  it("has one cell a value on the clipboard", () => {
    expect(toTsv(COLUMNS, ROWS)).toBe('Name\tGPU time (ns)\r\na "b", c\t5000000\r\n\'=1+ 1\t\r\n');
  });

  it("is a list of objects in JSON, keys with their unit, texts as they are", () => {
    expect(JSON.parse(toJson(COLUMNS, ROWS))).toEqual([
      { name: 'a "b", c', gpu_time_ns: 5_000_000 },
      { name: "=1+\t1", gpu_time_ns: null },
    ]);
  });

  it("names keys as the reports do, none twice", () => {
    const column = (header: string, unit?: Column<Row>["unit"], key?: string): Column<Row> => ({
      ...COLUMNS[0]!,
      header,
      ...(unit && { unit }),
      ...(key && { key }),
    });
    const columns = [
      column("%", "percent"),
      column("% of roof", "percent"),
      column("Step", "ns"),
      column("Step", "ns"),
      column("95 %"),
      column("Bytes", "bytes"),
      column("x", "ns", "own_key"),
    ];
    expect(jsonKeys(columns)).toEqual([
      "percent",
      "of_roof_percent",
      "step_ns",
      "step_ns_2",
      "95_percent",
      "bytes",
      "own_key",
    ]);
  });

  it("has a plain file name", () => {
    expect(fileName("ops ../resnet50/fp32", "csv")).toBe("dlprof-ops_.._resnet50_fp32.csv");
  });
});
