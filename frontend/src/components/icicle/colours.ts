/** Colours of an icicle's rectangles: a scale of how much of their time is on Tensor Cores, and what has no place on it. */
export const NOTHING_ELIGIBLE = "var(--c-unknown)";
export const UNKNOWN = "var(--c-other)";

/** From none of the time on Tensor Cores (0 percent) to all of it. */
export const onTensorCores = (percent: number): string =>
  `color-mix(in srgb, var(--c-tensor-core) ${percent}%, var(--warn-line))`;
