/** The theme, for what is drawn rather than styled. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Theme } from "./theme";

export const ThemeContext = createContext<Theme>("light");

export const useTheme = (): Theme => useContext(ThemeContext);
