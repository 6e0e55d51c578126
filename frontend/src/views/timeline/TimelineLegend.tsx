/** What the colours mean, of the kinds that occur. */
import type { EventKind } from "../../api/types";
import { colourOf } from "../../format/colours";
import type { Timeline } from "./model";

const IDLE_TITLE = "GPU idle, by cause";
const GROUPS: readonly (readonly [title: string, entries: readonly (readonly [kind: EventKind, label: string])[]])[] = [
  [
    "GPU",
    [
      ["tensor_core", "Tensor Core kernels"],
      ["other_kernels", "Other kernels"],
      ["unknown_kernels", "Unknown kernels"],
      ["memory", "Copies and sets"],
    ],
  ],
  [
    IDLE_TITLE,
    [
      ["idle_dataloader", "DataLoader"],
      ["idle_cpu_launch", "CPU launching work"],
      ["idle_python", "Python between ops"],
      ["idle_other", "Other idle time"],
    ],
  ],
  [
    "CPU ops",
    [
      ["forward", "Forward"],
      ["backward", "Backward"],
      ["optimizer", "Optimizer"],
      ["dataloader", "Data loading"],
      ["other", "Other"],
    ],
  ],
  [
    "CPU calls",
    [
      ["launch", "Launch"],
      ["wait", "Wait for the GPU"],
      ["copy", "Copy"],
      ["runtime", "Other CUDA call"],
      ["module", "Module, annotation"],
      ["overhead", "Profiler"],
    ],
  ],
];

const IDLE = ["idle_dataloader", "idle_cpu_launch", "idle_python", "idle_other"] as const;

export function TimelineLegend({ timeline }: { timeline: Timeline }) {
  const present = new Set<EventKind>([
    ...timeline.page.names.map((name) => name.kind),
    ...timeline.page.segments.flatMap((found) => found.kind.map((kind) => timeline.page.kinds[kind]!)),
  ]);
  if (present.has("annotation")) present.add("module");
  // Causes of an idle GPU are called by what the program is written in.
  const causes = new Map(timeline.page.names.map((name) => [name.kind, name.label]));
  return (
    <div class="timeline-legend" data-testid="timeline-legend">
      {GROUPS.map(([title, entries]) => {
        const shown = entries.filter(([kind]) => present.has(kind));
        if (shown.length === 0) return null;
        return (
          <dl key={title}>
            <dt>{title}</dt>
            {shown.map(([kind, label]) => (
              <dd key={kind}>
                <span class="swatch" style={{ background: colourOf(kind, 0, "timeline") }} />
                {title === IDLE_TITLE ? (causes.get(kind) ?? label) : label}
              </dd>
            ))}
          </dl>
        );
      })}
      <p class="muted small">
        {IDLE.some((kind) => present.has(kind))
          ? "Idle gaps narrower than two pixels: the height of a column is the idle share of its time. "
          : ""}
        Paler: work of the iterations around. Shaded: before this iteration's work begins on the GPU, or after it ends.
        The profile holds every op, CUDA call, module, annotation and GPU activity; Python stacks, thread names and
        counters are only in the raw trace.
        {timeline.page.deeper > 0 &&
          ` ${timeline.page.deeper.toLocaleString("en-US")} calls are nested too deep to be drawn.`}
      </p>
    </div>
  );
}
