/** Answers of the Modules route: a small model with each odd case. */
import type { ModuleRow } from "../api/types";
import { ref } from "./fixtures";
import { filled } from "./filled";

/** A row with numbers that fit together; `part` replaces some of them. */
export function moduleRow(path: string, part: Partial<ModuleRow> = {}): ModuleRow {
  const gpu = part.gpu_ns ?? 1_000_000;
  return filled("ModuleRow", {
    path,
    calls: 10,
    calls_per_iteration: 1,
    gpu_ns: gpu,
    gpu_percent: gpu / 1e6,
    gpu_forward_ns: gpu / 4,
    gpu_backward_ns: (3 * gpu) / 4,
    gpu_own_ns: 0,
    gpu_sum_ns: gpu,
    gpu_average_ns: gpu / 10,
    gpu_min_ns: gpu / 11,
    gpu_max_ns: gpu / 9,
    cpu_ns: 500_000,
    cpu_percent: 1.5,
    cpu_forward_ns: 300_000,
    cpu_backward_ns: 200_000,
    cpu_own_ns: 10_000,
    cpu_average_ns: 50_000,
    cpu_min_ns: 40_000,
    cpu_max_ns: 60_000,
    kernel_calls: 40,
    op_calls: 20,
    ops: 2,
    tc_eligible_ops: 2,
    tc_using_ops: 1,
    eligible_ns: gpu / 2,
    tc_ns: gpu / 4,
    utilization_percent: 50,
    ...part,
  });
}

const without = {
  calls: null,
  calls_per_iteration: null,
  gpu_forward_ns: null,
  gpu_backward_ns: null,
  cpu_forward_ns: null,
  cpu_backward_ns: null,
};

export const modules = filled("ModulesPage", {
  ref,
  headline: "5 modules ran and took 96.0 % of the GPU time; layer1 takes the most, 70.0 %.",
  headline_parts: [
    { text: "5 modules ran and took 96.0 % of the GPU time; ", kind: "", id: "" },
    { text: "layer1", kind: "module", id: "layer1" },
    { text: " takes the most, 70.0 %.", kind: "", id: "" },
  ],
  range: { first: 0, last: 9, total: 10, first_number: 3, last_number: 12, found_by: "profiler_step" },
  has_gpu: true,
  model: "ResNet50",
  rows: [
    moduleRow("", { order: 0, gpu_ns: 96_000_000, children: 2, type: "ResNet50" }),
    moduleRow("layer1", { order: 2, gpu_ns: 70_000_000, children: 4 }),
    moduleRow("layer1.0", { order: 3, gpu_ns: 40_000_000 }),
    moduleRow("stem", { order: 1, gpu_ns: 26_000_000, eligible_ns: 0, tc_ns: 0, utilization_percent: null }),
    moduleRow("layer1.=HYPERLINK(1)", { order: 4, gpu_ns: 20_000_000, utilization_percent: null }),
  ],
  outside: [
    moduleRow("", { role: "optimizer", gpu_ns: 3_000_000, eligible_ns: 0, utilization_percent: null, ...without }),
  ],
  total_rows: 8,
  coverage: {
    total_ns: 99_000_000,
    linked_ns: 99_000_000,
    linked_percent: 100,
  },
});

export const noModules = filled("ModulesPage", {
  ...modules,
  headline: "Module names were not recorded, so the time cannot be shown by module.",
  headline_parts: [
    { text: "Module names were not recorded, so the time cannot be shown by module.", kind: "", id: "" },
  ],
  has_gpu: false,
  rows: [],
  outside: [],
  total_rows: 0,
});
