/** The first lines of a page: its title, its answer in one sentence, and the range of iterations it speaks of. */
import type { ComponentChildren } from "preact";
import type { SelectedRange } from "../api/types";
import { RangePicker } from "./RangePicker";

interface PageHeadProps {
  title: string;
  subtitle?: string;
  headline: string;
  range?: SelectedRange;
  children?: ComponentChildren;
}

export function PageHead({ title, subtitle, headline, range, children }: PageHeadProps) {
  return (
    <div class="page-head">
      <div class="page-title">
        <h1>{title}</h1>
        {subtitle && <span class="subtitle">{subtitle}</span>}
        {range && <RangePicker range={range} />}
      </div>
      <p class="headline" data-testid="headline">
        {headline}
      </p>
      {children}
    </div>
  );
}
