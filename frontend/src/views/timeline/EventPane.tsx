/** The selected event: what it is, how it was launched, what it launched, what is around it; each of them can be gone to. */
import type { ComponentChildren } from "preact";
import type { TimelineCompiled, TimelineEvent, TimelineGap, TimelineGpuWork, TimelineSpot } from "../../api/types";
import { RelatedLinks } from "../filter/RelatedLinks";
import { CodeBlock } from "../../components/CodeBlock";
import { Facts } from "../../components/Facts";
import { Legend } from "../../components/Legend";
import { sumNs, StackedBar } from "../../components/StackedBar";
import { Term } from "../../components/Term";
import { Text, Value } from "../../components/Value";
import { Verdict } from "../../components/Verdict";
import { colourOf } from "../../format/colours";
import { formatNs } from "../../format/duration";
import { formatInteger, formatPercent } from "../../format/number";
import { formatUnit } from "../../format/unit";
import { useShortcut } from "../../keys/useShortcut";
import { kindWords } from "./HoverCard";
import type { Timeline } from "./model";
import { goTo } from "../../state/navigate";
import { kernelParam, opParam } from "../../state/sharedParams";

interface EventPaneProps {
  /** The event as the drawing has it. */
  spot: TimelineSpot | null;
  event: TimelineEvent | null;
  error: string | null;
  busy: boolean;
  timeline: Timeline;
  onGo: (spot: TimelineSpot) => void;
  onClose: () => void;
}

export function EventPane({ spot, event, error, busy, timeline, onGo, onClose }: EventPaneProps) {
  useShortcut("Escape", "Close the selected event", "Timeline", onClose);
  return (
    <aside class="pane timeline-pane" aria-label="Selected event" aria-busy={busy} data-testid="timeline-event">
      <button
        type="button"
        class="button button-small pane-close"
        onClick={onClose}
        aria-label="Close the selected event"
      >
        ✕
      </button>
      {error && <Unanswered spot={spot} error={error} timeline={timeline} />}
      {!event && busy && <div class="skeleton skeleton-table" role="status" aria-label="Loading" />}
      {event && !error && <Details event={event} timeline={timeline} onGo={onGo} />}
    </aside>
  );
}

function Details({
  event,
  timeline,
  onGo,
}: {
  event: TimelineEvent;
  timeline: Timeline;
  onGo: (spot: TimelineSpot) => void;
}) {
  const { spot, gpu, gap } = event;
  const shown = timeline.page.iteration.number;
  return (
    <>
      <h2 class="pane-title" data-testid="timeline-event-name">
        <span class="swatch" style={{ background: colourOf(spot.kind, 0, "timeline") }} /> {spot.label}
      </h2>
      {event.name !== spot.label && <CodeBlock code={event.name} label="Full name of the event" />}
      <Facts
        rows={[
          [<Term of="eventKind">What</Term>, kindWords(timeline, spot)],
          [<Term of="eventRow">Row</Term>, event.track],
          [<Term of="eventDuration">Duration</Term>, <Value value={spot.duration_ns} unit="ns" />],
          [<Term of="eventStart">Begins</Term>, <Value value={timeline.sinceStep(spot.start_ns)} unit="ns" />],
          ...(event.self_ns === null
            ? []
            : [[<Term of="cpuSelf">Self time</Term>, <Value value={event.self_ns} unit="ns" />] as const]),
          ...(event.iteration === shown
            ? []
            : [
                [
                  <Term of="eventIteration">Iteration</Term>,
                  event.iteration === null ? <Text value={null} missing="outside all" /> : String(event.iteration),
                ] as const,
              ]),
          ...(event.shapes ? [[<Term of="shapes">Shapes</Term>, event.shapes] as const] : []),
          ...(event.dtypes ? [[<Term of="dtypes">Types</Term>, event.dtypes] as const] : []),
        ]}
      />
      {!gap && <OpLink event={event} />}
      {event.compiled && <Compiled compiled={event.compiled} />}
      {gpu && <GpuWork gpu={gpu} onGo={onGo} />}
      {gap && <Gap gap={gap} onGo={onGo} />}
      {gap && <OpLink event={event} />}
      {event.launched_total > 0 && (
        <Spots
          title={`Launched ${formatInteger(event.launched_total)} on the GPU, ${formatNs(event.launched_ns)} together`}
          spots={event.launched}
          total={event.launched_total}
          timeline={timeline}
          onGo={onGo}
          testId="timeline-launched"
        />
      )}
      {event.around.length > 0 && (
        <Spots
          title={gpu ? "Launched in" : "Called in"}
          spots={event.around}
          total={event.around.length}
          timeline={timeline}
          onGo={onGo}
          testId="timeline-around"
        />
      )}
      <Spots
        title="Next to it"
        spots={[event.previous, event.next, event.inside].filter((one): one is TimelineSpot => one !== null)}
        total={0}
        labels={[event.previous && "before", event.next && "after", event.inside && "inside"].filter(
          (one): one is string => Boolean(one),
        )}
        timeline={timeline}
        onGo={onGo}
        testId="timeline-neighbours"
      />
    </>
  );
}

/** What the drawing itself has, if there is no answer with more: an exported file holds the details of the longest events only. */
function Unanswered({ spot, error, timeline }: { spot: TimelineSpot | null; error: string; timeline: Timeline }) {
  return (
    <>
      <h2 class="pane-title">{spot?.label || "Event"}</h2>
      {spot && (
        <Facts
          rows={[
            [<Term of="eventKind">What</Term>, kindWords(timeline, spot)],
            [<Term of="eventRow">Row</Term>, timeline.tracks[spot.track]?.label ?? ""],
            [<Term of="eventDuration">Duration</Term>, <Value value={spot.duration_ns} unit="ns" />],
            [<Term of="eventStart">Begins</Term>, <Value value={timeline.sinceStep(spot.start_ns)} unit="ns" />],
          ]}
        />
      )}
      <p class="reason" role="alert">
        {error}
      </p>
    </>
  );
}

/** To what the other pages say of it. */
function OpLink({ event }: { event: TimelineEvent }) {
  const { gpu, op, op_id, module } = event;
  if (!op && !gpu && !module) return null;
  return (
    <>
      <p class="timeline-links">
        {op_id && (
          <button
            type="button"
            class="link"
            onClick={() => goTo("ops", opParam.to(op_id))}
            data-testid="timeline-to-op"
          >
            {event.gap ? "which is of op" : "Op"} {op}
          </button>
        )}
        {gpu && (
          <button
            type="button"
            class="link"
            onClick={() => goTo("kernels", kernelParam.to(gpu.kernel_id))}
            data-testid="timeline-to-kernel"
          >
            All calls of this {gpu.kind}
          </button>
        )}
        {event.gap && (
          <button type="button" class="link" onClick={() => goTo("launches")}>
            All idle gaps
          </button>
        )}
        {!op_id && module && <span class="muted">In module {module}</span>}
      </p>
      {op_id && <RelatedLinks subject={{ kind: "op", id: op_id }} without="ops" />}
    </>
  );
}

/** What a launch of torch.compile's code computes. */
function Compiled({ compiled }: { compiled: TimelineCompiled }) {
  return (
    <>
      <h3>Compiled code</h3>
      <Facts
        rows={[
          ["ATen ops", <Text value={compiled.ops} />],
          [compiled.shared ? "Modules (shared)" : "Module", <Text value={compiled.modules} />],
          ["Lines", <Text value={compiled.places} />],
          ["Bytes (estimate)", <Value value={compiled.bytes} unit="bytes" />],
          ...(compiled.bytes_per_second === null
            ? []
            : [
                [
                  "Bandwidth",
                  <span>
                    <Value value={compiled.bytes_per_second} unit="bytes_per_second" />
                    {compiled.bandwidth_percent !== null &&
                      `, ${formatPercent(compiled.bandwidth_percent)} of the GPU's`}
                  </span>,
                ] as const,
              ]),
        ]}
      />
      <p class="timeline-links">
        <button type="button" class="link" onClick={() => goTo("compiled")} data-testid="timeline-to-compiled">
          All of the compiled code
        </button>
      </p>
    </>
  );
}

function GpuWork({ gpu, onGo }: { gpu: TimelineGpuWork; onGo: (spot: TimelineSpot) => void }) {
  const { launch } = gpu;
  const kernel = gpu.kind === "kernel";
  return (
    <>
      <h3>Launch</h3>
      <Facts
        rows={[
          [
            <Term of="eventLaunch">By</Term>,
            launch.call ? (
              <Go spot={launch.call} onGo={onGo} testId="timeline-launch-call">
                {launch.call.label}
              </Go>
            ) : (
              <Text value={null} missing="not recorded" />
            ),
          ],
          [<Term of="eventLaunchTime">That call took</Term>, <Value value={launch.call_ns} unit="ns" />],
          [
            <Term of="launchDelay">Launch delay</Term>,
            <span data-testid="timeline-delay">
              {launch.clock_disagrees ? (
                <Text value={null} missing="unknown: the clocks disagree" />
              ) : (
                <Value value={launch.delay_ns} unit="ns" />
              )}
            </span>,
          ],
          [<Term of="launchQueue">Queue</Term>, <Value value={launch.queue} unit="count" />],
        ]}
      />
      {launch.early && <p class="muted small">It began before its launching call returned.</p>}
      <h3>{kernel ? "Kernel" : "Copy or set"}</h3>
      <Facts
        rows={[
          ...(kernel
            ? [
                [<Term of="kernelTc">Tensor Cores</Term>, <Verdict value={gpu.tensor_core} />] as const,
                [<Term of="kernelPrecision">Precision</Term>, <Text value={gpu.precision} missing="–" />] as const,
                [
                  <Term of="grid">Grid × block</Term>,
                  <Text value={gpu.grid && `${gpu.grid} × ${gpu.block}`} missing="not recorded" />,
                ] as const,
                [
                  <Term of="occupancy">Occupancy</Term>,
                  <Value value={gpu.occupancy_percent} unit="percent" />,
                ] as const,
                [
                  <Term of="registers">Registers</Term>,
                  <Value value={gpu.registers_per_thread} unit="count" />,
                ] as const,
                [
                  <Term of="sharedMemory">Shared memory</Term>,
                  <Value value={gpu.shared_memory_bytes} unit="bytes" />,
                ] as const,
              ]
            : [
                [<Term of="bytes">Bytes</Term>, <Value value={gpu.bytes} unit="bytes" />] as const,
                [
                  <Term of="copyRate">Rate</Term>,
                  gpu.bytes_per_second === null ? (
                    <Text value={null} />
                  ) : (
                    `${formatUnit(gpu.bytes_per_second, "bytes")}/s`
                  ),
                ] as const,
              ]),
        ]}
      />
    </>
  );
}

function Gap({ gap, onGo }: { gap: TimelineGap; onGo: (spot: TimelineSpot) => void }) {
  const definitions = new Map(Object.entries(gap.definitions));
  return (
    <>
      <h3>
        <Term of="idleActivity">Causes</Term>
      </h3>
      <StackedBar slices={gap.causes} scaleNs={sumNs(gap.causes)} context="account" />
      <Legend slices={gap.causes} definitions={definitions} context="account" />
      <p class="muted small">
        In detail: {gap.activities.map(({ label, value_ns }) => `${label} ${formatNs(value_ns)}`).join(", ")}.
      </p>
      <h3>Ended by</h3>
      <p class="muted small">
        <Term of="idleKind">{gap.launched}</Term>
      </p>
      {gap.ended_by ? (
        <Go spot={gap.ended_by} onGo={onGo}>
          {gap.ended_by.label}
        </Go>
      ) : (
        <p class="muted">The end of the iteration.</p>
      )}
    </>
  );
}

interface SpotsProps {
  title: string;
  spots: TimelineSpot[];
  total: number;
  labels?: string[];
  timeline: Timeline;
  onGo: (spot: TimelineSpot) => void;
  testId: string;
}

function Spots({ title, spots, total, labels, timeline, onGo, testId }: SpotsProps) {
  if (spots.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul class="timeline-spots" data-testid={testId}>
        {spots.map((spot, index) => (
          <li key={`${spot.id} ${labels?.[index] ?? ""}`}>
            <span
              class="swatch"
              style={{ background: colourOf(spot.kind, 0, "timeline") }}
              title={kindWords(timeline, spot)}
            />
            <span class="timeline-spot-name">
              {labels && <span class="muted">{labels[index]} </span>}
              <Go spot={spot} onGo={onGo}>
                {spot.label}
              </Go>
            </span>
            <Value value={spot.duration_ns} unit="ns" />
          </li>
        ))}
      </ul>
      {total > spots.length && <p class="muted small">and {formatInteger(total - spots.length)} more</p>}
    </>
  );
}

/** An event's name that leads to it; plain text where it lies outside the drawing. */
function Go({
  spot,
  onGo,
  children,
  testId,
}: {
  spot: TimelineSpot;
  onGo: (spot: TimelineSpot) => void;
  children: ComponentChildren;
  testId?: string;
}) {
  if (spot.track < 0) return <span title="Before or after what is drawn">{children} (in another iteration)</span>;
  return (
    <button type="button" class="link" onClick={() => onGo(spot)} data-testid={testId}>
      {children}
    </button>
  );
}
