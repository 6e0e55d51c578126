/** Forward, backward, optimizer, data loading and the rest of the step, as one bar with its list. */
import type { Slice } from "../../api/types";
import { Card } from "../../components/Card";
import { Legend } from "../../components/Legend";
import { StackedBar, sumNs } from "../../components/StackedBar";
import { Term } from "../../components/Term";

export function Parts({ parts }: { parts: Slice[] }) {
  return (
    <Card title={<Term of="parts">Parts of the step</Term>} testId="overview-parts">
      <StackedBar slices={parts} scaleNs={sumNs(parts)} context="parts" />
      <Legend slices={parts} context="parts" />
    </Card>
  );
}
