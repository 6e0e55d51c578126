import { expect, it } from "vitest";
import { PAGES } from "../state/pages";
import { placeOf } from "./places";

it("has a place for every page but the reports, to which a menu leads", () => {
  expect(PAGES.filter((page) => placeOf(page) === null)).toEqual(["reports"]);
});
