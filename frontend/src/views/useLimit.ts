/** How many rows to ask for: the server's default first, four times as many with each "Load more". */
import { useState } from "preact/hooks";

const FACTOR = 4;

export function useLimit(key: string): { limit: number | null; loadMore: (shown: number, total: number) => void } {
  const [asked, setAsked] = useState<{ key: string; limit: number } | null>(null);
  return {
    limit: asked?.key === key ? asked.limit : null,
    loadMore: (shown, total) => setAsked({ key, limit: Math.min(total, Math.max(1, shown) * FACTOR) }),
  };
}
