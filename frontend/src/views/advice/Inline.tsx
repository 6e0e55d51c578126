/** The inline Markdown of rules' texts: code between backticks, and links, of which only web addresses become links. */
import { isWeb } from "./References";

const PARTS = /(`[^`]+`|\[[^\]]+\]\([^)\s]+\))/;

export function Inline({ text }: { text: string }) {
  return (
    <>
      {text.split(PARTS).map((part, index) => {
        if (index % 2 === 0) return part;
        if (part.startsWith("`")) return <code key={index}>{part.slice(1, -1)}</code>;
        const [label, url] = part.slice(1, -1).split("](") as [string, string];
        return isWeb(url) ? (
          <a key={index} href={url} target="_blank" rel="noopener noreferrer">
            {label}
          </a>
        ) : (
          label
        );
      })}
    </>
  );
}

/** The same as plain text, for a tooltip. */
export const plainText = (text: string): string =>
  text
    .split(PARTS)
    .map((part, index) =>
      index % 2 === 0 ? part : part.startsWith("`") ? part.slice(1, -1) : part.slice(1, part.indexOf("](")),
    )
    .join("");
