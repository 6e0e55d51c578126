/** Says that the tables of a page show only what belongs to an op, an op type, a kernel or a module, and leads on or back to all. */
import { formatCount } from "../../format/number";
import { RelatedLinks } from "./RelatedLinks";
import type { PageFilter } from "./usePageFilter";
import { assign } from "../../state/param";
import { filterParam } from "../../state/sharedParams";
import { kindText } from "../../state/subject";

interface FilterChipProps {
  filter: PageFilter;
  /** How many of how many rows the page's main table shows, and what they are. */
  shown: number;
  known: number;
  of: string;
  /** The server sent the rows that belong to it alone: of how many is not known. */
  alone?: boolean;
  /** What to say where nothing belongs to it. */
  none?: string;
}

export function FilterChip({ filter, shown, known, of, alone = false, none }: FilterChipProps) {
  const { subject, related, error } = filter;
  if (subject === null) return null;
  const name = related?.name ?? subject.id;
  const filtered = related !== null || shown < known;
  return (
    <div class="page-filter" data-testid="page-filter">
      <span class="page-filter-chip">
        {filtered ? "Filtered to" : error ? "Not filtered to" : "Filtering to"} {kindText(subject)}{" "}
        <strong title={name}>{name}</strong>
        <button
          type="button"
          class="page-filter-clear"
          aria-label={`Show all ${of} again`}
          data-testid="page-filter-clear"
          onClick={() => assign(filterParam.to(null))}
        >
          ✕
        </button>
      </span>
      <span class="muted small" role="status">
        {filtered
          ? shown === 0 && none
            ? none
            : `${formatCount(shown)} ${alone ? "" : `of ${formatCount(known)} `}${of}`
          : error}
      </span>
      <RelatedLinks subject={subject} />
    </div>
  );
}
