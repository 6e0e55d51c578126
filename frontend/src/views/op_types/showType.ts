/** Leads to the ops of one type, whatever the pages were filtered to. */
import { goTo } from "../../state/navigate";
import { filterParam, opParam } from "../../state/sharedParams";
import { opsTable } from "../ops/params";

export const showType = (type: string): void =>
  goTo("ops", opsTable.toRowsOf("type", type), opParam.to(null), filterParam.to(null));
