/** A small notice of what TensorBoard has loaded: in the corner, over nothing that is read, gone after a while or by a click. */
import { useEffect } from "preact/hooks";
import { formatCount } from "../../format/number";
import { assign } from "../../state/param";
import { profileParam, rangeParam } from "../../state/sharedParams";
import { NO_PROFILE } from "../../state/profile";
import { showProfile } from "../../state/navigate";

export interface Notice {
  /** The latest recording of the run that is shown: its cycle, or null for that of a new session. */
  latest: { run: string; cycle: number | null; newSession: boolean; shown: boolean; keeps: string } | null;
  /** New runs. */
  runs: readonly string[];
}

interface UpdateNoticeProps {
  notice: Notice;
  onClose: () => void;
}

/** Long enough to read two lines; what offers a choice stays. */
const SHOWN_MS = 12_000;

export function UpdateNotice({ notice, onClose }: UpdateNoticeProps) {
  const { runs } = notice;
  // Another run may have been picked meanwhile.
  const latest = notice.latest?.run === profileParam.value.run ? notice.latest : null;
  const offers = runs.length > 0 || (latest !== null && !latest.shown);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new notice is shown for its whole time; onClose is a new function in each rendering.
  useEffect(() => {
    if (offers) return undefined;
    const timer = setTimeout(onClose, SHOWN_MS);
    return () => clearTimeout(timer);
  }, [notice, offers]);
  const follow = (): void => {
    assign(profileParam.to({ ...profileParam.value, session: null, cycle: null }), rangeParam.to(null));
    onClose();
  };
  const newestRun = runs[runs.length - 1];
  if (!latest && newestRun === undefined) return null;
  return (
    <aside class="news" role="status" aria-label="New recordings" data-testid="news">
      {latest && (
        <p>
          {latest.newSession ? `A new session of ${latest.run}` : `Cycle ${latest.cycle} of ${latest.run}`}{" "}
          {latest.shown ? "was recorded; the page follows it." : `was recorded. ${latest.keeps}`}{" "}
          {latest.shown ? (
            <button
              type="button"
              class="link"
              data-testid="news-pin"
              onClick={() => {
                assign(profileParam.to({ ...profileParam.value, cycle: latest.cycle }));
                onClose();
              }}
            >
              Stay with it
            </button>
          ) : (
            <button type="button" class="link" data-testid="news-follow" onClick={follow}>
              Show the latest
            </button>
          )}
        </p>
      )}
      {newestRun !== undefined && (
        <p>
          {runs.length === 1 ? "A new run:" : `${formatCount(runs.length)} new runs, the last:`}{" "}
          <button
            type="button"
            class="link"
            data-testid="news-run"
            onClick={() => {
              showProfile({ ...NO_PROFILE, run: newestRun });
              onClose();
            }}
          >
            {newestRun}
          </button>
        </p>
      )}
      <button
        type="button"
        class="button button-small"
        aria-label="Close this notice"
        data-testid="news-close"
        onClick={onClose}
      >
        ✕
      </button>
    </aside>
  );
}
