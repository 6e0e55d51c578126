/**
 * TensorBoard's deep links: `#tb_dlprof&p.tb_dlprof.key=value` in the address of the page around the iframe. Where that page is
 * not TensorBoard's, or belongs to another site, the iframe's own address is used.
 */
import type { Pairs } from "./param";
import { tensorBoardWindow } from "./tensorboard";

const PLUGIN = "tb_dlprof";
const PREFIX = `p.${PLUGIN}.`;

/** The pairs of this plugin in a hash such as `#tb_dlprof&p.tb_dlprof.run=fp32`. */
export function parseHash(hash: string): Pairs {
  const pairs: Pairs = [];
  for (const part of hash.replace(/^#/, "").split("&")) {
    const equals = part.indexOf("=");
    const key = decode(equals < 0 ? part : part.slice(0, equals));
    if (equals > 0 && key.startsWith(PREFIX)) pairs.push([key.slice(PREFIX.length), decode(part.slice(equals + 1))]);
  }
  return pairs;
}

/** `hash` with this plugin's pairs replaced; what belongs to others is kept. */
export function formatHash(hash: string, pairs: Pairs): string {
  const others = hash
    .replace(/^#/, "")
    .split("&")
    .filter((part) => part && part !== PLUGIN && !decode(part).startsWith(PREFIX));
  // Commas part the names in a list: an address is for people, too.
  const own = pairs.map(
    ([key, value]) => `${PREFIX}${encodeURIComponent(key)}=${encodeURIComponent(value).replace(/%2C/g, ",")}`,
  );
  return `#${[PLUGIN, ...own, ...others].join("&")}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replace(/\+/g, " "));
  } catch {
    return text;
  }
}

/** The window whose address holds the state: TensorBoard's where there is one, else this one. */
const addressWindow = (): Window => tensorBoardWindow() ?? window;

export function readPairs(): Pairs {
  return parseHash(addressWindow().location.hash);
}

/** `push` makes a new entry of the history, which Back leaves again; `replace` rewrites the present one. */
export function writePairs(pairs: Pairs, entry: "push" | "replace" = "replace"): void {
  const target = addressWindow();
  const current = target.location.hash;
  // While another tab of TensorBoard is open the address is that tab's.
  if (target !== window && current !== "" && !/^#tb_dlprof(&|$)/.test(current)) return;
  const next = formatHash(target === window ? "" : current, pairs);
  if (next === current) return;
  try {
    // TensorBoard gives its iframes another base, which a hash alone would be relative to.
    const address = target === window ? window.location.href.replace(/#.*$/, "") + next : next;
    target.history[`${entry}State`](target.history.state, "", address);
  } catch {
    // Browsers limit how often this may be called; the next change writes again.
  }
}

/** Calls back when someone edits the address or goes back to a link with our pairs in it. */
export function onHashChange(callback: (pairs: Pairs) => void): () => void {
  const target = addressWindow();
  const listener = (): void => {
    const pairs = readPairs();
    if (pairs.length > 0) callback(pairs);
  };
  target.addEventListener("hashchange", listener);
  return () => target.removeEventListener("hashchange", listener);
}

/** Opens another tab of TensorBoard. */
export function openTab(plugin: string): void {
  addressWindow().location.hash = plugin;
}
