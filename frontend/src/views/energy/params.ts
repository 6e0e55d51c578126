/** What the page Energy keeps in the address: the price and the CO2 of a kilowatt-hour, and the steps of an epoch. */
import { ENERGY_OPTIONS } from "../../api/requests";
import { RequestParams } from "../../state/requestParams";

export const energyParams = new RequestParams(ENERGY_OPTIONS);
