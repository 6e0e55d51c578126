/** The drawing with its tools, and the selected event next to it. Holds what the drawing and the panes share. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Query } from "../../api/source";
import type { TimelineSpot } from "../../api/types";
import { useFile, useResource } from "../../api/useResource";
import { EventPane } from "./EventPane";
import { Figure } from "./Figure";
import { Found } from "./Found";
import { Help } from "./Help";
import { Insights } from "./Insights";
import { IterationChoice } from "./IterationChoice";
import { decodeMatches } from "./matches";
import type { Timeline } from "./model";
import { Search } from "./Search";
import type { Stage } from "./stage";
import { TimelineFiles } from "./TimelineFiles";
import { TimelineLegend } from "./TimelineLegend";
import { useChunks } from "./useChunks";
import { assign, useParam } from "../../state/param";
import { kernelParam, opParam, opTypeParam } from "../../state/sharedParams";
import { eventParam } from "./params";

export function TimelineView({ timeline, query }: { timeline: Timeline; query: Query }) {
  const [stage, setStage] = useState<Stage | null>(null);
  const [text, setText] = useState("");
  const loading = useChunks(timeline, query, stage);

  // What another page selected is looked for here, until something is selected here.
  const arrived = useRef({ op: opParam.value, kernel: kernelParam.value });
  const selected = useParam(eventParam);
  const [sought, setSought] = useState(selected === null);
  const byText = text.trim() !== "";
  const byOp = !byText && sought && selected === null && opParam.value !== null;
  const byKernel = !byText && sought && selected === null && opParam.value === null && kernelParam.value !== null;
  const byType = !byText && sought && selected === null && !byOp && !byKernel && opTypeParam.value !== null;
  const inFile = useFile() !== null;
  const wanted: Record<string, string | null> | null = inFile
    ? null
    : byText
      ? { text: text.trim() }
      : byOp
        ? { op: opParam.value }
        : byKernel
          ? { kernel: kernelParam.value }
          : byType
            ? { op_type: opTypeParam.value }
            : null;
  const found = useResource("timeline_matches", wanted && { ...query, ...wanted }, JSON.stringify(wanted));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the answer says what was asked for; apart from it only whether anything is asked for matters.
  const matches = useMemo(
    () => (wanted && found.data ? decodeMatches(found.data) : null),
    [found.data, wanted === null],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: the matches say which answer they are of; the view moves once for each.
  useEffect(() => {
    if (!stage) return;
    stage.matches = matches;
    stage.redraw();
    // A search only marks, and so does an op type, which runs nearly everywhere; what else another page selected is also gone to.
    const first = found.data?.first;
    if (first && !byText && !byType && !found.stale) {
      stage.setCursor(first);
      stage.focusOn(first);
    }
  }, [stage, matches]);

  const detail = useResource(
    "timeline_event",
    selected === null ? null : { ...query, id: selected },
    `event ${timeline.page.ref.run}`,
  );
  const event = detail.stale ? null : detail.data;
  const seen = useRef<string | null>(null);
  useEffect(() => {
    if (!stage) return;
    if (selected === null) {
      stage.selected = null;
      stage.links = [];
      stage.redraw();
      return;
    }
    if (!event) return;
    const kernel = event.gpu?.kernel_id ?? null;
    const op = event.gap ? "" : event.op_id;
    if (
      seen.current === null &&
      arrived.current.op !== null &&
      op !== arrived.current.op &&
      opParam.value === arrived.current.op
    ) {
      // Another page selected something else since: that is what is wanted.
      setSought(true);
      assign(eventParam.to(null));
      return;
    }
    setSought(false);
    stage.selected = event.spot;
    stage.links = linksOf(event.spot, event.gpu?.launch.call ?? null, event.launched, event.gap?.ended_by ?? null);
    if (seen.current !== event.spot.id) {
      // A link is zoomed to; what was clicked is in view already.
      if (stage.cursor?.id !== event.spot.id) {
        stage.setCursor(event.spot);
        stage.focusOn(event.spot);
      }
      seen.current = event.spot.id;
    }
    if ((op || null) !== opParam.value || (kernel !== null && kernel !== kernelParam.value))
      assign(opParam.to(op || null), ...(kernel === null ? [] : [kernelParam.to(kernel)]));
    stage.redraw();
  }, [stage, event, selected]);

  const select = (spot: TimelineSpot | null): void => {
    setSought(false);
    if (stage) {
      stage.selected = spot;
      stage.links = [];
      stage.redraw();
    }
    assign(eventParam.to(spot?.id ?? null));
  };
  const show = (spot: TimelineSpot): void => {
    if (spot.track < 0) return;
    stage?.setCursor(spot);
    stage?.focusOn(spot);
    select(spot);
  };

  const open = selected !== null;
  return (
    <>
      <div class="timeline-tools">
        <IterationChoice data={timeline.page} />
        {!inFile && <Search text={text} onText={setText} onStep={(step) => matches && stage?.stepTo(matches, step)} />}
        <Found
          wanted={wanted}
          resource={found}
          byText={byText}
          onClear={() => {
            if (byText) setText("");
            else {
              setSought(false);
              assign(opParam.to(null), kernelParam.to(null), opTypeParam.to(null));
            }
          }}
          onStep={(step) => matches && stage?.stepTo(matches, step)}
        />
        <span class="grow" />
        <span class="timeline-zoom" role="group" aria-label="Zoom">
          <button
            type="button"
            class="button button-small"
            onClick={() => stage?.zoomBy(0.5, 0.5, true)}
            aria-label="Zoom in"
            data-testid="timeline-in"
          >
            +
          </button>
          <button
            type="button"
            class="button button-small"
            onClick={() => stage?.zoomBy(2, 0.5, true)}
            aria-label="Zoom out"
            data-testid="timeline-out"
          >
            −
          </button>
          <button
            type="button"
            class="button button-small"
            onClick={() => stage?.showStep()}
            data-testid="timeline-step"
          >
            Step
          </button>
          <button type="button" class="button button-small" onClick={() => stage?.showAll()} data-testid="timeline-all">
            Whole
          </button>
        </span>
        <Help />
        {stage && <TimelineFiles timeline={timeline} stage={stage} />}
      </div>
      <Insights insights={timeline.page.insights} selected={selected} onShow={show} />
      <div class={open ? "timeline-split" : ""}>
        <Figure timeline={timeline} onStage={setStage} onSelect={select} loading={loading} />
        {open && (
          <EventPane
            spot={stage?.selected ?? null}
            event={detail.data}
            error={detail.error?.message ?? null}
            busy={detail.stale || (!detail.data && detail.slow)}
            timeline={timeline}
            onGo={show}
            onClose={() => select(null)}
          />
        )}
      </div>
      <TimelineLegend timeline={timeline} />
    </>
  );
}

/** From the launching call to its kernel, from a call to all that it launched, from a gap to what ended it. */
function linksOf(
  spot: TimelineSpot,
  call: TimelineSpot | null,
  launched: TimelineSpot[],
  endedBy: TimelineSpot | null,
): (readonly [TimelineSpot, TimelineSpot])[] {
  if (call) return call.track >= 0 ? [[call, spot]] : [];
  if (endedBy) return endedBy.track >= 0 ? [[spot, endedBy]] : [];
  return launched.filter((work) => work.track >= 0).map((work) => [spot, work] as const);
}
