/** Answers of the Memory route: two devices and each kind of unknown, no memory recorded, and neither addresses nor totals. */
import type { MemoryCategory } from "../api/types";
import { ref } from "./fixtures";
import { filled } from "./filled";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

const category = (key: MemoryCategory["key"], label: string, bytes: number | null) =>
  filled("MemoryCategory", {
    key,
    label,
    definition: `What ${label.toLowerCase()} are.`,
    bytes,
    percent: bytes === null ? null : (100 * bytes) / (2 * GIB),
    own_peak_bytes: bytes,
  });

export const memoryNotRecorded = filled("MemoryPage", {
  ref,
  headline: "Memory was not recorded: give profile_memory=True to tb_dlprof_plugin.profile(...), and record again.",
  range: { first: 0, last: 1, total: 2, first_number: 3, last_number: 4, found_by: "profiler_step" },
  how_to_record: 'with tb_dlprof_plugin.profile("runs/memory", profile_memory=True) as prof:\n',
});

export const memory = filled("MemoryPage", {
  ...memoryNotRecorded,
  headline: "GPU 0 holds at most 2.00 GiB, in iteration 4.",
  devices: [
    { key: "0", label: "GPU 0" },
    { key: "cpu", label: "CPU" },
  ],
  device: "0",
  figures: {
    peak_allocated_bytes: 2 * GIB,
    growth_bytes: -3 * MIB,
  },
  peak: {
    time_ns: 15_000,
    step_time_ns: 5_000,
    iteration_number: 4,
    op: "layer1.0.conv1/conv2d",
    op_id: "op0",
    direction: "forward",
    allocated_bytes: 2 * GIB,
  },
  peak_parts: [
    { text: "Peak 2.00 GiB at 5.00 µs of step 4, in ", kind: "", id: "" },
    { text: "layer1.0.conv1/conv2d", kind: "op", id: "op0" },
    { text: " (forward): 50 % activations.", kind: "", id: "" },
  ],
  categories: [
    category("before", "Before the recording", GIB),
    category("activations", "Activations", GIB),
    category("optimizer_state", "Optimizer state", null),
  ],
  curve: {
    time_ns: [0, 15_000],
    allocated: [GIB, 2 * GIB],
    categories: [[GIB, GIB], [0, GIB], []],
    stop_ns: 20_000,
    moments: 2,
  },
  iterations: [3, 4].map((number, index) => ({
    index,
    number,
    start_ns: 10_000 * index,
    peak_allocated_bytes: (1 + index) * GIB,
    category_bytes: [GIB, index * GIB, null],
    growth_bytes: -3 * MIB,
    allocations: index,
  })),
  parts: [
    { module: "", category: "before", bytes: GIB },
    { module: "layer1.0.conv1", category: "activations", bytes: GIB },
  ],
  modules: [
    { kind: "before", name: "", direction: "", bytes: GIB, percent: 50, allocations: null, own_peak_bytes: GIB },
    {
      kind: "group",
      name: "layer1.0.conv1",
      bytes: GIB,
      percent: 50,
      allocations: 1,
      own_peak_bytes: GIB,
    },
    { kind: "group", name: "", direction: "", bytes: 0, percent: 0, allocations: 0, own_peak_bytes: 8 },
    { kind: "outside", name: "", direction: "", bytes: 0, percent: 0, allocations: 0, own_peak_bytes: 4 },
  ],
  op_types: [
    {
      kind: "group",
      name: "conv2d",
      direction: "forward",
      bytes: GIB,
      percent: 50,
      allocations: 1,
      own_peak_bytes: GIB,
    },
  ],
  rows: [
    {
      id: 7,
      bytes: GIB,
      percent: 50,
      op: "layer1.0.conv1/conv2d",
      op_id: "op0",
      module: "layer1.0.conv1",
      direction: "forward",
      category: "activations",
      iteration: 4,
    },
    {
      id: 9,
      bytes: 512,
      percent: 0,
      category: "other",
      freed: "outside",
      lifetime_ns: 12,
    },
  ],
  total_rows: 2,
  notes: ["Module names were not recorded: give model= to the hook."],
});

export const memoryNotAttributed = filled("MemoryPage", {
  ...memory,
  headline: "GPU 0 holds at most 1.00 GiB above its lowest moment, in iteration 4.",
  figures: {
    ...memory.figures!,
    peak_allocated_bytes: GIB,
    relative: true,
    known_before_bytes: 5 * MIB,
    device_memory_bytes: 2 * GIB,
  },
  peak: { ...memory.peak!, op_id: null },
  categories: [],
  curve: { ...memory.curve!, allocated: [0, GIB], categories: [] },
  iterations: memory.iterations.map((row) => ({ ...row, category_bytes: [] })),
  not_attributed: "Categories and allocations are unknown: no addresses.",
  modules: [],
  op_types: [],
  rows: [],
  total_rows: null,
});
