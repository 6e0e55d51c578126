/** A label with its definition, shown on hover and on focus by `TooltipLayer`. */
import type { ComponentChildren } from "preact";
import { DEFINITIONS, LABELS, type DefinitionKey, type QuantityKey } from "../format/definitions";

/** A quantity, which has one name everywhere, or another definition with the label that a page gives it. */
export type Named<Label> =
  | { of: QuantityKey; label?: undefined }
  | { of: Exclude<DefinitionKey, QuantityKey>; label: Label };

type TermProps =
  | { of: QuantityKey; children?: undefined }
  | { of: Exclude<DefinitionKey, QuantityKey>; children: ComponentChildren };

export function Term({ of, children }: TermProps) {
  return (
    <Defined text={DEFINITIONS[of]} term={of}>
      {children ?? LABELS[of as QuantityKey]}
    </Defined>
  );
}

/** The same for a definition that comes with the page data. */
export function Defined({ text, term, children }: { text: string; term?: DefinitionKey; children: ComponentChildren }) {
  return (
    <span class="term" tabIndex={0} data-tip={text} data-term={term}>
      {children}
    </span>
  );
}
