/** What all open findings save together, and why that is less than their sum. */
import type { CombinedSaving } from "../../api/types";
import { Card } from "../../components/Card";
import { Term } from "../../components/Term";
import { Price } from "./Price";
import type { Scale } from "./SavingLine";

interface TogetherProps {
  combined: CombinedSaving;
  text: string;
  scale: Scale;
  /** Whether some findings are set aside, which the numbers leave out. */
  partly: boolean;
}

export function Together({ combined, text, scale, partly }: TogetherProps) {
  return (
    <Card
      title={<Term of="combinedSaving">{partly ? "All open findings together" : "All findings together"}</Term>}
      class="together"
      testId="advice-together"
    >
      <div class="together-body" data-testid="together-saving" data-value={String(combined.expected_ns)}>
        <Price saving={combined} scale={scale} />
        <details class="together-text">
          <summary>How they add up</summary>
          <p>{text}</p>
        </details>
      </div>
    </Card>
  );
}
