/** Before any test: the code of every page, so that a page is drawn as soon as its answer is there. */
import { loadPages } from "../shell/routes";

await loadPages();
