/** The roofline next to other figures of the same selection: requests the Roofline page's data and draws its chart. */
import { profileQuery } from "../../api/queries";
import { useResource } from "../../api/useResource";
import { Card } from "../../components/Card";
import { ErrorMessage } from "../../components/Message";
import { Term } from "../../components/Term";
import { RooflineChart } from "./RooflineChart";
import { goTo } from "../../state/navigate";
import { opParam, profileParam, rangeParam } from "../../state/sharedParams";

export function RooflineCard() {
  const profile = profileParam.value;
  const range = rangeParam.value;
  const key = [profile.run, profile.session, profile.rank, profile.cycle].join(" ");
  const { data, error, slow } = useResource("roofline", profileQuery(profile, range), key);
  if (!error && data && data.ops.length === 0) return null;
  return (
    <Card
      class="tc-card"
      title={<Term of="roof">Roofline: the rate of each op, and what this GPU could</Term>}
      testId="tc-roofline"
      actions={
        <button type="button" class="button button-small" onClick={() => goTo("roofline")}>
          All rates
        </button>
      }
    >
      {error && <ErrorMessage text={error.message} />}
      {data && <RooflineChart data={data} onOp={(op) => goTo("ops", opParam.to(op))} />}
      {!data && !error && slow && <div class="skeleton skeleton-table" role="status" aria-label="Loading" />}
    </Card>
  );
}
