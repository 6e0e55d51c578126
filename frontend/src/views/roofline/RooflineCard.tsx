/** The roofline next to other figures of the same selection: requests the Roofline page's data and draws its chart. */
import { profileQuery } from "../../api/queries";
import { useResource } from "../../api/useResource";
import type { RooflineOp } from "../../api/types";
import { Card } from "../../components/Card";
import { ErrorMessage } from "../../components/Message";
import { Term } from "../../components/Term";
import { RooflineChart } from "./RooflineChart";
import { goTo } from "../../state/navigate";
import { opParam, profileParam, rangeParam } from "../../state/sharedParams";

const NONE = "None of the rows shown holds a matrix product, a convolution or attention, whose FLOPs could be counted.";

interface RooflineCardProps {
  /** Which ops are drawn; null for all. */
  shows?: ((op: RooflineOp) => boolean) | null;
  /** Which of these stand out; null for all alike. */
  standsOut?: ((op: RooflineOp) => boolean) | null;
  /** What a click on an op does; by default it opens the op. */
  onOp?: (id: string) => void;
}

const openOp = (id: string): void => goTo("ops", opParam.to(id));

export function RooflineCard({ shows = null, standsOut = null, onOp = openOp }: RooflineCardProps) {
  const profile = profileParam.value;
  const range = rangeParam.value;
  const key = [profile.run, profile.session, profile.rank, profile.cycle].join(" ");
  const { data, error, slow } = useResource("roofline", profileQuery(profile, range), key);
  if (!error && data && data.ops.length === 0) return shows || standsOut ? <p class="muted">{NONE}</p> : null;
  const drawn = data && shows ? { ...data, ops: data.ops.filter(shows) } : data;
  const only = drawn && standsOut ? new Set(drawn.ops.filter(standsOut).map(({ id }) => id)) : null;
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
      {drawn && drawn.ops.length > 0 && <RooflineChart data={drawn} only={only} onOp={onOp} />}
      {drawn && drawn.ops.length === 0 && <p class="muted">{NONE}</p>}
      {!data && !error && slow && <div class="skeleton skeleton-table" role="status" aria-label="Loading" />}
    </Card>
  );
}
