/** From a selected op, kernel or module to what the other pages say of it. */
import { expectArrival } from "../../state/arrival";
import { useView } from "../../state/store";
import type { Page } from "../../state/pages";
import type { Subject } from "../../state/subject";
import { linksOf } from "./links";

/** `without`: a page that is led to otherwise. */
export function RelatedLinks({ subject, without }: { subject: Subject; without?: Page }) {
  const { state, set } = useView();
  return (
    <nav class="related" aria-label={`More of this ${subject.kind}`} data-testid="related">
      {linksOf(subject)
        .filter(({ page }) => page !== state.page && page !== without)
        .map(({ page, label, change }) => (
          <button
            type="button"
            key={page}
            class="chip"
            data-testid={`related-${page}`}
            onClick={() => {
              expectArrival();
              set(change);
            }}
          >
            {label}
          </button>
        ))}
    </nav>
  );
}
