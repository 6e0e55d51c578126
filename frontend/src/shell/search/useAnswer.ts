/** Words in, what is found for them out: by the server, or in an exported file by the answers that it holds. */
import { profileQuery } from "../../api/queries";
import type { SearchPage } from "../../api/types";
import { useResource } from "../../api/useResource";
import { profileParam, rangeParam } from "../../state/sharedParams";

export interface Answer {
  data: SearchPage | null;
  error: string | null;
  /** The answer to these words is still to come. */
  waits: boolean;
}

export function useAnswer(words: string): Answer {
  const profile = profileParam.value;
  const range = rangeParam.value;
  const query = profile.run === null ? null : { ...profileQuery(profile, range), text: words };
  const answer = useResource("search", query, "search");
  const waits = answer.stale || (answer.data === null && answer.error === null && query !== null);
  return { data: answer.data, error: answer.error?.message ?? null, waits };
}
