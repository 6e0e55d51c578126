import { expect, it } from "vitest";
import { filled, filledAll } from "./filled";

it("what is not said is empty, in what is inside, too", () => {
  const page = filled("WorkDetail", { row: { name: "conv1" }, kernels: [{ short_name: "gemm" }] });
  expect([page.row!.name, page.row!.calls, page.row!.gpu_ns, page.ref]).toEqual([
    "conv1",
    0,
    null,
    { run: "", session: "", rank: 0, cycle: 0 },
  ]);
  expect(page.kernels.map(({ short_name, calls }) => [short_name, calls])).toEqual([["gemm", 0]]);
  expect(page.shapes).toEqual([]);
});

it("what may be missing is null until a part of it is said, and null stays null", () => {
  expect(filled("MemoryPage", {}).curve).toBeNull();
  expect(filled("MemoryPage", { curve: null }).curve).toBeNull();
  expect(filled("MemoryPage", { curve: { time_ns: [1] } }).curve).toMatchObject({ time_ns: [1], allocated: [] });
  expect(filledAll("RunRef", [{ rank: 1 }])).toEqual([{ run: "", session: "", rank: 1, cycle: 0 }]);
});
