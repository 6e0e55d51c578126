/** Whether the rows of the tables around are still coming. */
import { createContext } from "preact";

export const GrowingContext = createContext(false);
