/** The Timeline page: one iteration's threads, streams and gaps to move through; the selected event next to it, the longest below. */
import { useMemo } from "preact/hooks";
import { profileQuery } from "../../api/queries";
import type { TimelinePage as TimelineData } from "../../api/types";
import { EmptyMessage } from "../../components/Message";
import { PageHead } from "../../features/PageHead";
import { TraceLinks } from "../../features/TraceLinks";
import { LongestEvents } from "./LongestEvents";
import { Timeline } from "./model";
import { TimelineView } from "./TimelineView";
import { profileParam } from "../../state/sharedParams";
import { useParam } from "../../state/param";

export function TimelinePage({ data }: { data: TimelineData }) {
  const timeline = useMemo(() => new Timeline(data), [data]);
  // Always the iteration that is shown: the median one of another range would be another one.
  const profile = useParam(profileParam);
  const query = useMemo(
    () => ({ ...profileQuery(profile, null), iteration: data.iteration.index }),
    [data.iteration.index, profile],
  );
  return (
    <>
      <PageHead title="Timeline" headline={data.headline} range={data.range} />
      {data.events === 0 ? (
        <EmptyMessage>Nothing was recorded in this iteration.</EmptyMessage>
      ) : (
        <>
          <TimelineView
            key={`${data.ref.run} ${data.ref.session} ${data.ref.rank} ${data.ref.cycle} ${data.iteration.index} ${data.window_ns}`}
            timeline={timeline}
            query={query}
          />
          <LongestEvents data={data} />
          <TraceLinks />
        </>
      )}
    </>
  );
}
