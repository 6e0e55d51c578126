/** What the page Energy keeps in the address: the price and the CO2 of a kilowatt-hour, and the steps of an epoch. */
import { indexParam, textParam } from "../../state/param";

const DECIMAL = /^\d{1,9}(\.\d{1,6})?$/;

export const priceParam = textParam("price", {}, DECIMAL);
export const co2Param = textParam("co2", {}, DECIMAL);
export const stepsParam = indexParam("steps", { ofRun: true });

export const ENERGY_PARAMS = [priceParam, co2Param, stepsParam];

/** A number of the address; null where it is none. */
export const decimal = (text: string | null): number | null => (text === null || text === "" ? null : Number(text));
