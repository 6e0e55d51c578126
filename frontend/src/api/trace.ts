/** A trace file of a run, read whole in pieces of at most 1 MB: notebook proxies cut larger answers. */
import type { Client } from "./client";
import { ApiError, type Query } from "./source";
import type { TraceFile } from "./types";

/** What the server gives at most at once. */
export const PIECE_BYTES = 1_000_000;
/** Pieces under way at a time: behind an SSH tunnel the way takes longer than the reading. */
const AT_ONCE = 4;

/** `tell` is called with the number of bytes that have arrived. Rejects with the reason of `signal` once it is aborted. */
export async function readTrace(
  client: Client,
  query: Query,
  file: TraceFile,
  tell: (bytes: number) => void,
  signal: AbortSignal,
): Promise<ArrayBuffer> {
  const whole = new Uint8Array(file.size_bytes);
  let next = 0;
  let arrived = 0;
  let failed = false;
  const readOn = async (): Promise<void> => {
    while (next < file.size_bytes && !failed) {
      signal.throwIfAborted();
      const offset = next;
      next += PIECE_BYTES;
      const piece = await client
        .piece("trace", { ...query, name: file.name, version: file.version, offset }, signal)
        .catch((error: unknown) => {
          failed = true;
          throw error;
        });
      if (piece.length !== Math.min(PIECE_BYTES, file.size_bytes - offset)) {
        failed = true;
        throw new ApiError("A part of the trace was cut on its way. Copy the file itself, by its path below.", 0);
      }
      whole.set(piece, offset);
      arrived += piece.length;
      tell(arrived);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, readOn));
  return whole.buffer;
}
