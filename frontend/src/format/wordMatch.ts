/** How well words fit a name, by the rule of the server's search (`views/search.py`), for what the page itself knows. Pure. */

export const wordsOf = (text: string): string[] => text.toLowerCase().split(/\s+/).filter(Boolean);

/** Null where a word is missing; else per word 0 for a part of the name that is it, 1 for one that begins with it, 2 for the rest. */
export function fit(words: readonly string[], name: string, more = ""): number | null {
  const own = name.toLowerCase();
  const all = `${own}\n${more.toLowerCase()}`;
  const parts = [...own.split(/[./:_<>\s-]+/), ...own.split(/[./:\s]+/)];
  let sum = 0;
  for (const word of words) {
    if (!all.includes(word)) return null;
    if (!parts.includes(word)) sum += own.startsWith(word) || parts.some((part) => part.startsWith(word)) ? 1 : 2;
  }
  return sum;
}
