/** The roofline beside other figures of the same selection: asks for the Roofline page's data and draws its chart. */
import { profileQuery } from "../../api/queries";
import { useResource } from "../../api/useResource";
import { Card } from "../../components/Card";
import { ErrorMessage } from "../../components/Message";
import { Term } from "../../components/Term";
import { useView } from "../../state/store";
import { RooflineChart } from "./RooflineChart";

export function RooflineCard() {
  const { state, set } = useView();
  const { profile, range } = state;
  const key = [profile.run, profile.session, profile.rank, profile.cycle].join(" ");
  const { data, error, slow } = useResource("roofline", profileQuery(profile, range), key);
  if (!error && data && data.ops.length === 0) return null;
  return (
    <Card
      class="tc-card"
      title={<Term of="roof">Roofline: the rate of each op, and what this GPU could</Term>}
      testId="tc-roofline"
      actions={
        <button type="button" class="button button-small" onClick={() => set({ page: "roofline" })}>
          All rates
        </button>
      }
    >
      {error && <ErrorMessage text={error.message} />}
      {data && <RooflineChart data={data} onOp={(op) => set({ page: "ops", op })} />}
      {!data && !error && slow && <div class="skeleton skeleton-table" role="status" aria-label="Loading" />}
    </Card>
  );
}
