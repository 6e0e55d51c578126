/** The first lines of a page: its title, its answer in one sentence, the range of iterations that it is about, what separates them, and whether they can be trusted. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { profileQuery } from "../api/queries";
import type { SelectedRange } from "../api/types";
import { takePageFocus } from "../state/pageFocus";
import { NoSteps, ProfileKeyNode } from "./KeyNodePicker";
import { RangePicker } from "./RangePicker";
import { TrustLine } from "./TrustLine";
import { profileParam, rangeParam } from "../state/sharedParams";

interface PageHeadProps {
  title: string;
  subtitle?: string;
  headline: string;
  range?: SelectedRange;
  children?: ComponentChildren;
}

export function PageHead({ title, subtitle, headline, range, children }: PageHeadProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only as the page comes up: a later headline is no arrival.
  useEffect(() => {
    if (heading.current) takePageFocus(heading.current, headline);
  }, []);
  return (
    <div class="page-head">
      <div class="page-title">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {subtitle && <span class="subtitle">{subtitle}</span>}
        {range && range.found_by !== "none" && (
          <span class="page-iterations">
            <RangePicker range={range} />
            <ProfileKeyNode range={range} />
          </span>
        )}
      </div>
      <p class="headline" data-testid="headline">
        {headline}
      </p>
      {range && <RecordingTrust />}
      {range?.found_by === "none" && <NoSteps range={range} />}
      {children}
    </div>
  );
}

/** Of the recording and the iterations that the page shows. */
function RecordingTrust() {
  const profile = profileParam.value;
  const range = rangeParam.value;
  return <TrustLine query={profileQuery(profile, range)} />;
}
