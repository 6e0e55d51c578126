/** The figures of the Memory page: on top what the device holds, below what the allocator would need. */
import type { MemoryFigures as Figures, MemoryLimits } from "../../api/types";
import { Figure } from "../../components/Figure";
import { formatBytes, formatPercent } from "../../format/number";

interface MemoryFiguresProps {
  figures: Figures;
  onGpu: boolean;
}

export function MemoryFigures({ figures, onGpu }: MemoryFiguresProps) {
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

/** What the allocator cannot use, and with how little memory the run would do. */
export function AllocatorFigures({ figures, limits }: { figures: Figures; limits: MemoryLimits }) {
  return (
    <dl class="figures">
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
      {limits.smallest_limit_bytes !== null && (
        <>
          <Figure
            of="memoryHoles"
            label="Free but not usable"
            unit="bytes"
            value={limits.holes_bytes}
            under={limits.largest_hole_bytes ? `largest free block ${formatBytes(limits.largest_hole_bytes)}` : ""}
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
            label="Smallest limit without retries"
            unit="bytes"
            value={limits.without_retries_bytes}
            testId="memory-without-retries"
          />
        </>
      )}
      {limits.outside_bytes !== null && (
        <Figure
          of="memoryOutside"
          label="Outside of PyTorch"
          unit="bytes"
          value={limits.outside_bytes}
          under="context, libraries, other processes"
          testId="memory-outside"
        />
      )}
    </dl>
  );
}
