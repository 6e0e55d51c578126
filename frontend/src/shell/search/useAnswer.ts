/** Words in, what the server finds for them out; in an exported file, what its own answers hold. */
import { profileQuery } from "../../api/queries";
import type { SearchPage } from "../../api/types";
import { useFile, useResource } from "../../api/useResource";
import { useView } from "../../state/store";
import { searchFile } from "./inFile";

export interface Answer {
  data: SearchPage | null;
  error: string | null;
  /** The answer to these words is still to come. */
  waits: boolean;
}

export function useAnswer(words: string): Answer {
  const { profile, range } = useView().state;
  const inFile = useFile() !== null;
  const query = profile.run === null ? null : profileQuery(profile, range);
  const answer = useResource("search", query && !inFile ? { ...query, text: words } : null, "search");
  const held = inFile ? query : null;
  const ops = useResource("ops", held);
  const kernels = useResource("kernels", held);
  const modules = useResource("modules", held);
  const advice = useResource("advice", held && { ...held, set_aside: null });
  if (inFile) {
    const data = searchFile(words, { ops: ops.data, kernels: kernels.data, modules: modules.data, advice: advice.data });
    return { data, error: ops.error?.message ?? null, waits: held !== null && data === null && ops.error === null };
  }
  const waits = answer.stale || (answer.data === null && answer.error === null && query !== null);
  return { data: answer.data, error: answer.error?.message ?? null, waits };
}
