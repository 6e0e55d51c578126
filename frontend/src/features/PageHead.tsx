/** The first lines of a page: its answer in one sentence, and whether the recording can be trusted. Tells the header its range of iterations. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { profileQuery } from "../api/queries";
import type { SelectedRange, TrustVerdict } from "../api/types";
import { takePageFocus } from "../state/pageFocus";
import { NoSteps } from "./KeyNodePicker";
import { Trust, TrustLine } from "./TrustLine";
import { profileParam, rangeParam } from "../state/sharedParams";
import { shownRange } from "../state/shownRange";

interface PageHeadProps {
  title: string;
  subtitle?: string;
  headline: string;
  /** The same sentence with links, where it has some. */
  linked?: ComponentChildren;
  range?: SelectedRange;
  /** The verdict on the recording where the page has it: in few words, or above all else where it is poor. */
  trust?: TrustVerdict;
  children?: ComponentChildren;
}

export function PageHead({ title, subtitle, headline, linked, range, trust, children }: PageHeadProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only as the page comes up: a later headline is no arrival.
  useEffect(() => {
    if (heading.current) takePageFocus(heading.current, headline);
  }, []);
  useLayoutEffect(() => {
    shownRange.value = range ?? null;
  }, [range]);
  useEffect(
    () => () => {
      shownRange.value = null;
    },
    [],
  );
  return (
    <div class="page-head">
      {/* The header shows which page it is; screen readers read it here. */}
      <h1 class="hidden" ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {trust?.verdict === "poor" && <Trust trust={trust} banner />}
      <p class="headline" data-testid="headline">
        {linked ?? headline}
      </p>
      {subtitle && <p class="subtitle">{subtitle}</p>}
      {trust ? trust.verdict !== "poor" && <Trust trust={trust} /> : range && <RecordingTrust />}
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
