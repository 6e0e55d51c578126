/**
 * Hands a trace to the Perfetto UI in another window, as https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui
 * describes it: PING until it answers PONG, then one message with the bytes. They go from window to window in the browser.
 */
export const PERFETTO = "https://ui.perfetto.dev";

const PING_MS = 100;
/** A page that has not answered by then cannot be reached. */
const PATIENCE_MS = 60_000;

/** Must be called while a click is handled: browsers block it otherwise, and it returns null. */
export function openPerfetto(): Window | null {
  return window.open(PERFETTO);
}

/** Resolves once the bytes are sent; rejects with a sentence. `buffer` is empty afterwards. */
export function sendToPerfetto(
  perfetto: Window,
  buffer: ArrayBuffer,
  title: string,
  fileName: string,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearInterval(timer);
      window.removeEventListener("message", listen);
      signal.removeEventListener("abort", abort);
    };
    const abort = (): void => {
      end();
      reject(signal.reason);
    };
    const listen = (event: MessageEvent): void => {
      if (event.source !== perfetto || event.origin !== PERFETTO || event.data !== "PONG") return;
      end();
      perfetto.postMessage({ perfetto: { buffer, title, fileName } }, PERFETTO, [buffer]);
      resolve();
    };
    const start = Date.now();
    const ping = (): void => {
      if (!perfetto.closed && Date.now() - start < PATIENCE_MS) {
        perfetto.postMessage("PING", PERFETTO);
        return;
      }
      end();
      reject(
        new Error(
          perfetto.closed
            ? "The Perfetto window was closed."
            : `${PERFETTO} did not answer. Check that this browser reaches it, or save the trace.`,
        ),
      );
    };
    window.addEventListener("message", listen);
    signal.addEventListener("abort", abort);
    const timer = setInterval(ping, PING_MS);
    ping();
  });
}
