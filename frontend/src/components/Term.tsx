/** A label with its definition, shown on hover and on focus by `TooltipLayer`. */
import type { ComponentChildren } from "preact";
import { DEFINITIONS, type DefinitionKey } from "../format/definitions";

export function Term({ of, children }: { of: DefinitionKey; children: ComponentChildren }) {
  return (
    <Defined text={DEFINITIONS[of]} term={of}>
      {children}
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
