/** From a selected op, op type, kernel or module to what the other pages say of it. */
import { openPage } from "../../state/navigate";
import type { Page } from "../../state/pages";
import { kindText, type Subject } from "../../state/subject";
import { linksOf } from "./links";
import { pageParam } from "../../state/sharedParams";

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
  return (
    <nav class="related" aria-label={`More of this ${kindText(subject)}`} data-testid="related">
      {linksOf(subject)
        .filter(({ page }) => page !== pageParam.value && page !== without && (hasGpu || !ON_GPU.has(page)))
        .map(({ page, label, changes }) => (
          <button
            type="button"
            key={page}
            class="chip"
            data-testid={`related-${page}`}
            onClick={() => openPage(page, ...changes)}
          >
            {label}
          </button>
        ))}
    </nav>
  );
}
