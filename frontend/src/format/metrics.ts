/** The measures that can be searched for: their names as the pages have them, the definition behind each, and the page to see it on. */
import type { Page } from "../state/pages";
import { type DefinitionKey, LABELS, type QuantityKey } from "./definitions";

export interface Metric {
  key: DefinitionKey;
  label: string;
  page: Page;
}

const of = (page: Page, labels: Partial<Record<Exclude<DefinitionKey, QuantityKey>, string>>): Metric[] =>
  Object.entries(labels).map(([key, label]) => ({ key: key as DefinitionKey, label, page }));

/** Those that have their names already. */
const quantities = (page: Page, ...keys: QuantityKey[]): Metric[] =>
  keys.map((key) => ({ key, label: LABELS[key], page }));

export const METRICS: readonly Metric[] = [
  ...quantities("overview", "stepTime", "recordedStep", "gpuUtilization", "tcUtilization", "samples"),
  ...of("overview", {
    recorder: "What the profiler added",
    resourceUsage: "Resource usage",
    parts: "Parts of the step",
    kernelTime: "Kernel time",
    tcEfficiency: "Eligible kernel time",
    iterations: "Iterations",
    precisionMode: "Precision of the run",
    lossScaling: "Loss scaling",
    numericHealth: "Numeric health",
    skippedSteps: "Skipped steps",
    lossScale: "Loss scale",
    wallClock: "Wall clock time",
    coverage: "Coverage of the GPU time",
  }),
  ...of("ops", {
    gpuTime: "GPU time",
    cpuTotal: "CPU total",
    cpuSelf: "CPU self",
    tcEligible: "TC eligible",
    usingTc: "Using TC",
    kernelCalls: "Kernel calls",
    pass: "Pass",
  }),
  ...of("modules", {
    moduleGpu: "GPU time of a module",
    moduleOwn: "Own time of a module",
    moduleUtilization: "Tensor Core utilization of a module",
  }),
  ...of("kernels", { kernelFamily: "Kernel family", kernelTc: "Kernel on Tensor Cores", occupancy: "Occupancy" }),
  ...quantities("launches", "gpuIdle"),
  ...of("launches", {
    launchedLate: "Launched late",
    cpuSlack: "CPU not needed",
    pace: "Pace",
    idleActivity: "Idle time by what the CPU did",
    launchDelay: "Launch delay",
    launchQueue: "Launch queue",
    syncCalls: "Synchronising calls",
  }),
  ...of("tensor_cores", {
    eligibleTime: "Eligible time",
    reason: "Why not on Tensor Cores",
    opUtilization: "Tensor Core utilization of an op",
  }),
  ...of("roofline", {
    flops: "FLOPs",
    flopRate: "FLOP rate",
    roof: "Roof",
    roofPercent: "Share of the roof",
    intensity: "FLOPs per byte",
    matrixTime: "Time of matrix work",
  }),
  ...quantities("memory", "memoryPeakAllocated", "memoryPeakReserved"),
  ...of("memory", {
    memoryFragmentation: "Fragmentation",
    memoryAtPeak: "Memory at the peak",
    memoryCurve: "Memory over time",
  }),
  ...of("advice", {
    saving: "Estimated saving",
    combinedSaving: "Saving of all findings together",
    severity: "Severity",
    confidence: "Confidence",
    forecast: "Forecast of mixed precision",
  }),
  ...of("compare", {
    speedup: "Speedup",
    waterfall: "Waterfall of the difference",
    noise: "Noise",
    promises: "Predicted and measured savings",
    matched: "Matched time",
  }),
  ...of("runs", { runSpeedup: "Speedup over the base", runBase: "Base of a run" }),
];
