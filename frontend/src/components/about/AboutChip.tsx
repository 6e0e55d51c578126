/** Says that the tables of a page show only what belongs to an op, a kernel or a module, and leads on or back to all. */
import { formatCount } from "../../format/number";
import { useView } from "../../state/store";
import { RelatedLinks } from "./RelatedLinks";
import type { About } from "./useAbout";

interface AboutChipProps {
  about: About;
  /** How many of how many rows the page's main table shows, and what they are. */
  shown: number;
  known: number;
  of: string;
  /** What to say where nothing belongs to it. */
  none?: string;
}

export function AboutChip({ about, shown, known, of, none }: AboutChipProps) {
  const { set } = useView();
  const { subject, related, error } = about;
  if (subject === null) return null;
  const name = related?.name ?? subject.id;
  const filtered = related !== null || shown < known;
  return (
    <div class="about" data-testid="about">
      <span class="about-chip">
        {filtered ? "Filtered to" : error ? "Not filtered to" : "Filtering to"} {subject.kind} <strong title={name}>{name}</strong>
        <button type="button" class="about-clear" aria-label={`Show all ${of} again`} data-testid="about-clear" onClick={() => set({ about: null })}>
          ✕
        </button>
      </span>
      <span class="muted small" role="status">
        {filtered ? (shown === 0 && none ? none : `${formatCount(shown)} of ${formatCount(known)} ${of}`) : error}
      </span>
      <RelatedLinks subject={subject} />
    </div>
  );
}
