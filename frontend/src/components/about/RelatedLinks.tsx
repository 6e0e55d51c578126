/** From a selected op, kernel or module to what the other pages say of it. */
import { expectArrival } from "../../state/arrival";
import { useView } from "../../state/store";
import type { Page } from "../../state/pages";
import type { Subject } from "../../state/subject";
import { linksOf } from "./links";

/** They have nothing to say of a recording without a GPU. */
const ON_GPU: ReadonlySet<Page> = new Set(["kernels", "tensor_cores", "roofline", "launches"]);

interface RelatedLinksProps {
  subject: Subject;
  /** A page that is led to otherwise. */
  without?: Page;
  /** Whether the recording has a GPU, where that is known. */
  hasGpu?: boolean;
}

export function RelatedLinks({ subject, without, hasGpu = true }: RelatedLinksProps) {
  const { state, set } = useView();
  return (
    <nav class="related" aria-label={`More of this ${subject.kind}`} data-testid="related">
      {linksOf(subject)
        .filter(({ page }) => page !== state.page && page !== without && (hasGpu || !ON_GPU.has(page)))
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
