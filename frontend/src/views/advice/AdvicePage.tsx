/** The Advice page: the findings as cards, then the rules that stayed silent and why. */
import { useEffect } from "preact/hooks";
import type { AdvicePage as AdviceData } from "../../api/types";
import { EmptyMessage } from "../../components/Message";
import { PageHead } from "../../components/PageHead";
import { useView } from "../../state/store";
import { FindingCard, findingElementId } from "./FindingCard";
import { MixedPrecision } from "./MixedPrecision";
import { RuleList } from "./RuleList";

export function AdvicePage({ data }: { data: AdviceData }) {
  const { state } = useView();
  useEffect(() => {
    if (state.finding === null) return;
    const card = document.getElementById(findingElementId(state.finding));
    card?.scrollIntoView?.({ block: "start" });
    card?.focus();
  }, [state.finding, data]);
  return (
    <>
      <PageHead title="Advice" headline={data.headline} range={data.range} />
      {data.findings.length === 0 && <EmptyMessage>No rule found anything to change. Below is what each of them looked at.</EmptyMessage>}
      <div class="findings">
        {data.findings.map((finding) => (
          <FindingCard key={finding.id} finding={finding} />
        ))}
      </div>
      <MixedPrecision data={data.mixed_precision} />
      <RuleList rules={data.rules} />
    </>
  );
}
