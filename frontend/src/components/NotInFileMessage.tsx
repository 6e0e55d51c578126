/** In place of what an exported file does not hold: why, and the way back to what it does. */
import type { NotInFile } from "../api/client";
import { useView } from "../state/store";

export function NotInFileMessage({ reason }: { reason: NotInFile }) {
  const { state, set } = useView();
  const choices = state.page === "compare" ? [state.a, state.b] : [{ ...state.profile, range: state.range }];
  const cut = choices.some((choice) => choice.range !== null || choice.keyNode !== null);
  const whole = { range: null, keyNode: null };
  return (
    <div class="message" role="note" data-testid="not-in-file">
      <p>{reason.message}</p>
      {cut && (
        <button type="button" class="button" data-testid="whole-recording" onClick={() => set({ range: null, profile: { ...state.profile, keyNode: null }, a: { ...state.a, ...whole }, b: { ...state.b, ...whole } })}>
          Back to the whole recording
        </button>
      )}
    </div>
  );
}
