/** What the Modules page keeps in the address. */
import { TableParam } from "../../state/tableParam";

export const modulesTable = new TableParam("modules");
