/** The pages of a run, or of two, as one HTML file, which the server makes and gives in pieces of at most 1 MB. */
import type { Client } from "./client";
import type { Query } from "./source";
import { PIECE_BYTES } from "./trace";

/** `tell` is called with the number of bytes that have arrived; the first piece takes as long as the file takes to make. */
export async function readPageFile(
  client: Client,
  query: Query,
  tell: (bytes: number) => void,
  signal: AbortSignal,
): Promise<Blob> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for (let offset = 0; ; offset += PIECE_BYTES) {
    const piece = await client.piece("page_file", { ...query, offset }, signal);
    pieces.push(piece);
    tell(offset + piece.length);
    if (piece.length < PIECE_BYTES) return new Blob(pieces, { type: "text/html" });
  }
}
