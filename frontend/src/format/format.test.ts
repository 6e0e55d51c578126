import { describe, expect, it } from "vitest";
import { exactNs, formatNs, formatNsDifference, parseDuration } from "./duration";
import { formatBytes, formatCount, formatInterval, formatPercent, formatRatio, threeDigits } from "./number";
import { exactUnit, formatUnit } from "./unit";
import { colourProperty } from "./colours";

describe("durations", () => {
  it.each([
    [0, "0 ns"],
    [7, "7.00 ns"],
    [999, "999 ns"],
    [999.7, "1.00 µs"],
    [1_500, "1.50 µs"],
    [12_345_678, "12.3 ms"],
    [999_600_000, "1.00 s"],
    [4_200_000_000_000, "4,200 s"],
    [-2_500_000, "-2.50 ms"],
  ])("writes %d ns as %s", (ns, text) => {
    expect(formatNs(ns)).toBe(text);
  });

  it("never writes null as 0", () => {
    for (const unit of ["ns", "percent", "count", "bytes", "ratio", "per_second"] as const) {
      expect(formatUnit(null, unit)).toBe("unknown");
      expect(exactUnit(null, unit)).toBe("unknown");
    }
    expect(formatNsDifference(null)).toBe("unknown");
  });

  it("keeps the exact value", () => {
    expect(exactNs(12_345_678)).toBe("12,345,678 ns");
    expect(exactUnit(33.333333333, "percent")).toBe("33.333333 %");
  });

  it("has no decimals that only a division made", () => {
    expect(exactUnit(66_999_999_999_999.99, "flops_per_second")).toBe("67,000,000,000,000 FLOP/s");
    expect(exactUnit(999_999.25, "bytes")).toBe("999,999.25 bytes");
  });

  it("writes an interval whose ends read the same as one number and half its width", () => {
    expect(formatInterval(145_900_000, 146_100_000, formatNs)).toBe("146 ms ± 100 µs");
    expect(formatInterval(2.6, 2.6, formatRatio)).toBe("2.60×");
    expect(formatInterval(2.6, 2.61, formatRatio)).toBe("2.60× to 2.61×");
  });

  it("signs differences", () => {
    expect(formatNsDifference(1_200_000)).toBe("+1.20 ms");
    expect(formatNsDifference(-1_200_000)).toBe("−1.20 ms");
  });

  it("reads what people type", () => {
    expect(parseDuration("1.5 ms")).toBe(1_500_000);
    expect(parseDuration("20us")).toBe(20_000);
    expect(parseDuration("20µs")).toBe(20_000);
    expect(parseDuration("300")).toBe(300);
    expect(parseDuration("soon")).toBeNull();
  });
});

describe("numbers", () => {
  it("keeps three significant digits", () => {
    expect([0.001234, 1.2345, 9.999, 12.345, 123.45, 999.6, 1234.5].map(threeDigits)).toEqual([
      "0.00123",
      "1.23",
      "10.0",
      "12.3",
      "123",
      "1,000",
      "1,235",
    ]);
  });

  it("does not round to the ends of percentages", () => {
    expect(formatPercent(0)).toBe("0 %");
    expect(formatPercent(0.001)).toBe("<0.01 %");
    expect(formatPercent(99.97)).toBe(">99.9 %");
    expect(formatPercent(100)).toBe("100 %");
  });

  it("writes counts, bytes and ratios", () => {
    expect(formatCount(1_234_567)).toBe("1,234,567");
    expect(formatCount(161.5)).toBe("162");
    expect(formatBytes(1.5 * 1024 ** 3)).toBe("1.50 GiB");
    expect(formatRatio(2.311)).toBe("2.31×");
  });
});

describe("colours", () => {
  it("gives a category the same colour wherever it is shown", () => {
    expect(colourProperty("tensor_core", 0, "resource_usage")).toBe(colourProperty("tensor_core", 3, "kernel_time"));
    expect(colourProperty("memory", 2)).toBe("--c-memory");
  });

  it("tells what is used from what is on Tensor Cores", () => {
    expect(colourProperty("using", 0, "gpu_utilization")).not.toBe(
      colourProperty("using", 0, "tensor_core_efficiency"),
    );
  });
});
