/** What the page "What fits" keeps in the address: the configuration that is asked for; null is as recorded. */
import { PLAN_OPTIONS } from "../../api/requests";
import { RequestParams } from "../../state/requestParams";

export const planParams = new RequestParams(PLAN_OPTIONS);
