/** In place of what an exported file does not hold: why, and the way back to what it does. */
import type { NotInFile } from "../api/source";
import { assign } from "../state/param";
import { profileParam, rangeParam } from "../state/sharedParams";

interface NotInFileMessageProps {
  reason: NotInFile;
  /** Back to the whole of what the page is about; null where it is the whole already. */
  onWhole?: (() => void) | null | undefined;
}

export function NotInFileMessage({ reason, onWhole = wholeProfile() }: NotInFileMessageProps) {
  return (
    <div class="message" role="note" data-testid="not-in-file">
      <p>{reason.message}</p>
      {onWhole && (
        <button type="button" class="button" data-testid="whole-recording" onClick={onWhole}>
          Back to the whole recording
        </button>
      )}
    </div>
  );
}

/** For the pages of one profile. */
function wholeProfile(): (() => void) | null {
  const profile = profileParam.value;
  if (rangeParam.value === null && profile.keyNode === null) return null;
  return () => assign(rangeParam.to(null), profileParam.to({ ...profile, keyNode: null }));
}
