/** The page Tried: what each remedy gained in an experiment on this machine, the best set, and the patch that makes it permanent. */
import type { TriedPage as TriedData } from "../../api/types";
import { NoteList } from "../../components/NoteList";
import { Card } from "../../components/Card";
import { CodeBlock } from "../../components/CodeBlock";
import { Figure } from "../../components/Figure";
import { EmptyMessage } from "../../components/Message";
import { TableCard } from "../../components/table/TableCard";
import { PageHead } from "../../features/PageHead";
import { formatInterval, formatPercent } from "../../format/number";
import { NOT_TRIED, TRIED } from "./columns";

const HOW_TO_TRY = "tb-dlprof try --budget 5m train.py";

export function TriedPage({ data }: { data: TriedData }) {
  if (data.baseline_ns === null) return <NotTried data={data} />;
  const run = data.ref.run;
  return (
    <>
      <PageHead title="Tried" headline={data.headline} />
      <TriedFigures data={data} />
      <div class="grid">
        <TableCard
          title="One remedy at a time"
          testId="tried-rows"
          name={`tried ${run}`}
          columns={TRIED}
          rows={data.rows}
          rowId={(row) => row.remedy}
        />
        <TableCard
          title="Sets of remedies"
          testId="tried-sets"
          name={`tried sets ${run}`}
          columns={TRIED}
          rows={data.sets}
          rowId={(row) => row.remedy}
        />
        {data.patch !== "" && (
          <Card title="The best set as a patch" testId="tried-patch">
            <CodeBlock code={data.patch} label="Patch of the script" />
          </Card>
        )}
        <ByHand data={data} />
        <TableCard
          title="Not measured"
          testId="tried-not"
          name={`not tried ${run}`}
          columns={NOT_TRIED}
          rows={data.not_tried}
          rowId={(row) => row.remedy}
        />
      </div>
      <NoteList testId="tried-notes" notes={[data.seeds_differ, ...data.notes].filter((sentence) => sentence !== "")} />
    </>
  );
}

function TriedFigures({ data }: { data: TriedData }) {
  const { best_low_percent: low, best_high_percent: high } = data;
  return (
    <dl class="figures">
      <Figure
        of="triedBest"
        label="Best set"
        unit="percent"
        value={data.best_gain_percent}
        under={low === null || high === null ? "" : formatInterval(low, high, formatPercent)}
        testId="tried-best"
      />
      <Figure
        of="triedBaseline"
        label="Step before"
        unit="ns"
        value={data.baseline_ns}
        under={data.device}
        testId="tried-baseline"
      />
      <Figure
        of="triedSeconds"
        label="Experiment"
        unit="ns"
        value={data.seconds === null ? null : data.seconds * 1e9}
        testId="tried-seconds"
      />
    </dl>
  );
}

/** Those of the best set that no patch can write, with their code. */
function ByHand({ data }: { data: TriedData }) {
  const codes = data.rows.filter((row) => data.by_hand.includes(row.remedy) && row.code !== "");
  if (codes.length === 0) return null;
  return (
    <Card title="To be written by hand" testId="tried-by-hand">
      {codes.map((row) => (
        <CodeBlock key={row.remedy} code={row.code} label={row.title} />
      ))}
    </Card>
  );
}

function NotTried({ data }: { data: TriedData }) {
  return (
    <>
      <PageHead title="Tried" headline={data.headline} />
      <EmptyMessage>
        <p>
          The unchanged script runs next to itself with one remedy after the other, and nothing of yours is written.
        </p>
        <CodeBlock code={HOW_TO_TRY} label="How to try remedies" />
      </EmptyMessage>
    </>
  );
}
