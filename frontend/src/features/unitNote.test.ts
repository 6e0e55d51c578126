import { describe, expect, it } from "vitest";
import type { SelectedRange } from "../api/types";
import { stepsOf } from "../state/shownRange";
import { unitText } from "./UnitNote";

describe("sums over the iterations", () => {
  it("stay totals where no step was found", () => {
    const range: SelectedRange = {
      first: 0,
      last: 9,
      total: 10,
      first_number: 3,
      last_number: 12,
      found_by: "profiler_step",
    };
    expect([stepsOf(range), stepsOf({ ...range, found_by: "none" })]).toEqual([10, 1]);
    expect([unitText(range, 10), unitText(range, 1), unitText({ ...range, found_by: "none" }, 1)]).toEqual([
      "per step, mean of 10",
      "total of 10 iterations",
      "total of the recording",
    ]);
  });
});
