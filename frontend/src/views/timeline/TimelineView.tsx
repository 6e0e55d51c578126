/** The drawing with its tools, and the selected event beside it. Holds what the drawing and the panes share. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Query } from "../../api/client";
import type { TimelineSpot } from "../../api/types";
import { useFile, useResource } from "../../api/useResource";
import { useView } from "../../state/store";
import { EventPane } from "./EventPane";
import { Figure } from "./Figure";
import { Found } from "./Found";
import { Help } from "./Help";
import { IterationChoice } from "./IterationChoice";
import { decodeMatches } from "./matches";
import type { Timeline } from "./model";
import { Search } from "./Search";
import type { Stage } from "./stage";
import { TimelineFiles } from "./TimelineFiles";
import { TimelineLegend } from "./TimelineLegend";
import { useChunks } from "./useChunks";

export function TimelineView({ timeline, query }: { timeline: Timeline; query: Query }) {
  const { state, set } = useView();
  const [stage, setStage] = useState<Stage | null>(null);
  const [text, setText] = useState("");
  const loading = useChunks(timeline, query, stage);

  // What another page selected is looked for here, until something is selected here.
  const arrived = useRef({ op: state.op, kernel: state.kernel });
  const [sought, setSought] = useState(state.event === null);
  const byText = text.trim() !== "";
  const byOp = !byText && sought && state.event === null && state.op !== null;
  const byKernel = !byText && sought && state.event === null && state.op === null && state.kernel !== null;
  const inFile = useFile() !== null;
  const wanted: Record<string, string | null> | null = inFile ? null : byText ? { text: text.trim() } : byOp ? { op: state.op } : byKernel ? { kernel: state.kernel } : null;
  const found = useResource("timeline_matches", wanted && { ...query, ...wanted }, JSON.stringify(wanted));
  const matches = useMemo(() => (wanted && found.data ? decodeMatches(found.data) : null), [found.data, wanted === null]);
  useEffect(() => {
    if (!stage) return;
    stage.matches = matches;
    stage.redraw();
    // A search only marks; what another page selected is also gone to.
    const first = found.data?.first;
    if (first && !byText && !found.stale) {
      stage.setCursor(first);
      stage.focusOn(first);
    }
  }, [stage, matches]);

  const detail = useResource("timeline_event", state.event === null ? null : { ...query, id: state.event }, `event ${timeline.page.ref.run}`);
  const event = detail.stale ? null : detail.data;
  const seen = useRef<string | null>(null);
  useEffect(() => {
    if (!stage) return;
    if (state.event === null) {
      stage.selected = null;
      stage.links = [];
      stage.redraw();
      return;
    }
    if (!event) return;
    const kernel = event.gpu?.kernel_id ?? null;
    const op = event.gap ? "" : event.op_id;
    if (seen.current === null && arrived.current.op !== null && op !== arrived.current.op && state.op === arrived.current.op) {
      // Another page selected something else since: that is what is wanted.
      setSought(true);
      set({ event: null });
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
    if ((op || null) !== state.op || (kernel !== null && kernel !== state.kernel)) set({ op: op || null, ...(kernel !== null && { kernel }) });
    stage.redraw();
  }, [stage, event, state.event]);

  const select = (spot: TimelineSpot | null): void => {
    setSought(false);
    if (stage) {
      stage.selected = spot;
      stage.links = [];
      stage.redraw();
    }
    set({ event: spot?.id ?? null });
  };
  const goTo = (spot: TimelineSpot): void => {
    if (spot.track < 0) return;
    stage?.setCursor(spot);
    stage?.focusOn(spot);
    select(spot);
  };

  const open = state.event !== null;
  return (
    <>
      <div class="timeline-tools">
        <IterationChoice data={timeline.page} />
        {!inFile && <Search text={text} onText={setText} onStep={(step) => matches && stage?.stepTo(matches, step)} />}
        <Found wanted={wanted} resource={found} byText={byText} onClear={() => (byText ? setText("") : (setSought(false), set({ op: null, kernel: null })))} onStep={(step) => matches && stage?.stepTo(matches, step)} />
        <span class="grow" />
        <span class="timeline-zoom" role="group" aria-label="Zoom">
          <button type="button" class="button button-small" onClick={() => stage?.zoomBy(0.5, 0.5, true)} aria-label="Zoom in" data-testid="timeline-in">
            +
          </button>
          <button type="button" class="button button-small" onClick={() => stage?.zoomBy(2, 0.5, true)} aria-label="Zoom out" data-testid="timeline-out">
            −
          </button>
          <button type="button" class="button button-small" onClick={() => stage?.showAll()} data-testid="timeline-all">
            Whole
          </button>
        </span>
        <Help />
        {stage && <TimelineFiles timeline={timeline} stage={stage} />}
      </div>
      <div class={open ? "timeline-split" : ""}>
        <Figure timeline={timeline} onStage={setStage} onSelect={select} loading={loading} />
        {open && <EventPane spot={stage?.selected ?? null} event={detail.data} error={detail.error?.message ?? null} busy={detail.stale || (!detail.data && detail.slow)} timeline={timeline} onGo={goTo} onClose={() => select(null)} />}
      </div>
      <TimelineLegend timeline={timeline} />
    </>
  );
}

/** From the launching call to its kernel, from a call to all that it launched, from a gap to what ended it. */
function linksOf(spot: TimelineSpot, call: TimelineSpot | null, launched: TimelineSpot[], endedBy: TimelineSpot | null): (readonly [TimelineSpot, TimelineSpot])[] {
  if (call) return call.track >= 0 ? [[call, spot]] : [];
  if (endedBy) return endedBy.track >= 0 ? [[spot, endedBy]] : [];
  return launched.filter((work) => work.track >= 0).map((work) => [spot, work] as const);
}
