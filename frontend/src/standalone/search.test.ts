import { expect, it } from "vitest";
import * as fixtures from "../testing/fixtures";
import { modules } from "../testing/modules";
import { report } from "../testing/reports";
import { searchIn } from "./search";

const PAGES = { ops: fixtures.ops, kernels: fixtures.kernels, modules, advice: fixtures.advice, report };

it("finds in an exported file what its pages hold, the best and longest first", () => {
  const page = searchIn(PAGES, "convolution_backward");
  expect(page.hits[0]).toMatchObject({ kind: "op", fit: 0 });
  const ops = page.hits.filter(({ kind }) => kind === "op");
  expect(page.found["op"]).toBeGreaterThan(ops.length);
  expect(ops.map((hit) => hit.value_ns)).toEqual(ops.map((hit) => hit.value_ns).sort((x, y) => y! - x!));
  expect(searchIn(PAGES, " ")).toMatchObject({ hits: [], found: {} });
});

it("finds backward ops by DLProf's word, too", () => {
  const found = searchIn(PAGES, "conv backward").found["op"];
  expect(found).toBe(fixtures.ops.rows.filter((row) => row.role === "backward").length);
  expect(searchIn(PAGES, "conv bprop").found["op"]).toBe(found);
  expect(searchIn(PAGES, "conv optimizer").hits[0]?.detail).toBe("optimizer");
});

it("finds reports by their names, too", () => {
  const [first] = report.reports;
  expect(searchIn(PAGES, first!.name).hits).toContainEqual(
    expect.objectContaining({ kind: "report", id: first!.name, value_ns: null }),
  );
});
