/** What the Op types page keeps in the address. */
import { TableParam } from "../../state/tableParam";

export const opTypesTable = new TableParam("types");
