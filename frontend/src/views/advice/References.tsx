/** Where to read on. */
import type { Reference } from "../../api/types";

/** Only web addresses become links. */
export const isWeb = (url: string): boolean => /^https?:\/\//i.test(url);

export function References({ references }: { references: Reference[] }) {
  if (references.length === 0) return <span />;
  return (
    <span class="references">
      Read on:{" "}
      {references.map((reference, index) => (
        <span key={reference.url}>
          {index > 0 && ", "}
          {isWeb(reference.url) ? (
            <a href={reference.url} target="_blank" rel="noopener noreferrer">
              {reference.title}
            </a>
          ) : (
            reference.title
          )}
        </span>
      ))}
    </span>
  );
}
