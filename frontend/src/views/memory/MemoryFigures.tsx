/** The figures on top of the Memory page; those of an allocator that reserves memory only where there is one. */
import type { MemoryFigures as Figures, MemoryLimits } from "../../api/types";
import { Figure } from "../../components/Figure";
import { formatBytes, formatPercent } from "../../format/number";

interface MemoryFiguresProps {
  figures: Figures;
  /** Null for the CPU. */
  limits: MemoryLimits | null;
  onGpu: boolean;
}

export function MemoryFigures({ figures, limits, onGpu }: MemoryFiguresProps) {
  const share = (percent: number | null): string => (percent === null ? "" : `${formatPercent(percent)} of the GPU's`);
  const known = figures.known_before_bytes;
  const base = known > 0 ? "above its lowest moment" : "above what was there before, which is unknown";
  return (
    <dl class="figures">
      <Figure
        of="memoryPeakAllocated"
        unit="bytes"
        value={figures.peak_allocated_bytes}
        under={figures.relative ? base : share(figures.peak_allocated_percent)}
        testId="memory-peak"
      />
      {known > 0 && (
        <Figure
          of="memoryKnownBefore"
          label="Before the recording"
          unit="bytes"
          value={known}
          under="at least"
          testId="memory-known-before"
        />
      )}
      {onGpu && (
        <>
          <Figure
            of="memoryPeakReserved"
            unit="bytes"
            value={figures.peak_reserved_bytes}
            under={share(figures.peak_reserved_percent)}
            testId="memory-reserved"
          />
          <Figure
            of="memoryFragmentation"
            label="Fragmentation at the peak"
            unit="bytes"
            value={figures.fragmentation_bytes}
            under={
              figures.fragmentation_percent === null
                ? ""
                : `${formatPercent(figures.fragmentation_percent)} of what is reserved`
            }
            testId="memory-fragmentation"
          />
          {limits && limits.smallest_limit_bytes !== null && (
            <>
              <Figure
                of="memoryHoles"
                label="Free but not usable"
                unit="bytes"
                value={limits.holes_bytes}
                under={limits.largest_hole_bytes ? `largest hole ${formatBytes(limits.largest_hole_bytes)}` : ""}
                testId="memory-holes"
              />
              <Figure
                of="memorySmallestLimit"
                label="Smallest limit"
                unit="bytes"
                value={limits.smallest_limit_bytes}
                under="that works, with retries"
                testId="memory-smallest"
              />
              <Figure
                of="memoryWithoutRetries"
                label="Without retries"
                unit="bytes"
                value={limits.without_retries_bytes}
                under="the limit from which on"
                testId="memory-without-retries"
              />
            </>
          )}
          {limits && limits.outside_bytes !== null && (
            <Figure
              of="memoryOutside"
              label="Outside of PyTorch"
              unit="bytes"
              value={limits.outside_bytes}
              under="context, libraries, others"
              testId="memory-outside"
            />
          )}
          <Figure of="gpuMemory" unit="bytes" value={figures.device_memory_bytes} under="" testId="memory-device" />
        </>
      )}
      <Figure
        of="memoryGrowthRate"
        label="Growth per iteration"
        unit="bytes"
        value={figures.growth_bytes}
        under={figures.grows ? "grows in each" : ""}
        testId="memory-growth"
      />
    </dl>
  );
}
