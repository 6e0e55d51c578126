/** The figures on top of the Memory page; those of an allocator that reserves memory only where there is one. */
import type { MemoryFigures as Figures } from "../../api/types";
import { Figure } from "../../components/Figure";
import { formatPercent } from "../../format/number";

export function MemoryFigures({ figures, onGpu }: { figures: Figures; onGpu: boolean }) {
  const share = (percent: number | null): string => (percent === null ? "" : `${formatPercent(percent)} of the GPU's`);
  const known = figures.known_before_bytes;
  const base = known > 0 ? "above its lowest moment" : "above what was there before, which is unknown";
  return (
    <dl class="figures">
      <Figure
        of="memoryPeakAllocated"
        label="Peak allocated"
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
            label="Peak reserved"
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
          <Figure
            of="gpuMemory"
            label="Memory of the GPU"
            unit="bytes"
            value={figures.device_memory_bytes}
            under=""
            testId="memory-device"
          />
        </>
      )}
      <Figure
        of="memoryGrowth"
        label="Growth per iteration"
        unit="bytes"
        value={figures.growth_bytes}
        under={figures.grows ? "grows in each" : ""}
        testId="memory-growth"
      />
    </dl>
  );
}
