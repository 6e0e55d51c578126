/** Forward, backward, optimizer, data loading and the rest of the step, as one bar with its list. */
import type { Slice } from "../../api/types";
import { Card } from "../../components/Card";
import { PartsBar } from "../../components/PartsBar";
import { Term } from "../../components/Term";

export function Parts({ parts }: { parts: Slice[] }) {
  return (
    <Card title={<Term of="parts">Parts of the step</Term>} testId="overview-parts">
      <PartsBar name="Parts of the step" slices={parts} context="parts" />
    </Card>
  );
}
