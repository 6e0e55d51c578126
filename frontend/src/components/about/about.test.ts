import { describe, expect, it } from "vitest";
import { parseSubject, subjectText, withoutForeignFilter } from "../../state/subject";
import { INITIAL_STATE, pairsToState, stateToPairs } from "../../state/viewState";
import { linksOf } from "./links";

describe("what the pages are filtered to", () => {
  it("is spelled in the address, whatever its name", () => {
    const about = { kind: "module" as const, id: ":other & a.b:c" };
    expect(parseSubject(subjectText(about))).toEqual(about);
    expect(pairsToState(stateToPairs({ ...INITIAL_STATE, about })).about).toEqual(about);
    expect([parseSubject("thing:x"), parseSubject("op:"), parseSubject(null)]).toEqual([null, null, null]);
  });

  it("goes along from page to page, but not to a thing that is opened by itself", () => {
    const state = { ...INITIAL_STATE, page: "kernels" as const, about: { kind: "op" as const, id: "a" } };
    expect(withoutForeignFilter(state, { page: "memory" })).toEqual({ page: "memory" });
    expect(withoutForeignFilter(state, { kernel: "k" })).toEqual({ kernel: "k" });
    expect(withoutForeignFilter(state, { page: "ops", op: "b" })).toEqual({ page: "ops", op: "b", about: null });
    expect(withoutForeignFilter(state, { page: "advice", finding: null })).toEqual({ page: "advice", finding: null });
  });

  it("leads to every page that knows of it; its own page selects it", () => {
    const pages = ["ops", "kernels", "modules", "advice", "tensor_cores", "roofline", "launches", "memory"];
    const own = { op: "ops", kernel: "kernels", module: "modules" } as const;
    for (const kind of ["op", "kernel", "module"] as const) {
      const subject = { kind, id: "x" };
      const links = linksOf(subject);
      // Where a module runs stands on the timeline by itself.
      expect(links.map(({ page }) => page)).toEqual(kind === "module" ? pages : [...pages, "timeline"]);
      for (const { page, change } of links) expect(change.about).toEqual(page === own[kind] || page === "timeline" ? null : subject);
      expect(links.find(({ page }) => page === own[kind])?.change[kind]).toBe("x");
    }
  });
});
