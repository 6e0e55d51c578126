import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ALL_PARAMS } from "../../shell/routes";
import { connectAddress } from "../../state/address";
import { goTo } from "../../state/navigate";
import { filterParam, kernelParam, moduleParam, opParam, opTypeParam, pageParam } from "../../state/sharedParams";
import { parseSubject, subjectText } from "../../state/subject";
import { readAddress } from "../../testing/address";
import { findingParam } from "../advice/params";
import { kernelsTable } from "../kernels/params";
import { opsTable } from "../ops/params";
import { linksOf } from "./links";

let disconnect: () => void;

beforeEach(() => {
  window.location.hash = "";
  disconnect = connectAddress(ALL_PARAMS);
});

afterEach(() => disconnect());

describe("what the pages are filtered to", () => {
  it("is spelled in the address, whatever its name", () => {
    const filter = { kind: "module" as const, id: ":other & a.b:c" };
    expect(parseSubject(subjectText(filter))).toEqual(filter);
    filterParam.value = filter;
    const pairs = filterParam.pairs();
    readAddress();
    expect(filterParam.value).toBeNull();
    readAddress(pairs);
    expect(filterParam.value).toEqual(filter);
    expect([parseSubject("thing:x"), parseSubject("op:"), parseSubject(null)]).toEqual([null, null, null]);
  });

  it("goes along from page to page, but not to a thing that is opened by itself", () => {
    const filter = { kind: "op" as const, id: "a" };
    const shownBy = (...to: Parameters<typeof goTo>): unknown[] => {
      readAddress([
        ["page", "kernels"],
        ["about", "op:a"],
      ]);
      goTo(...to);
      return [pageParam.value, filterParam.value];
    };
    expect(shownBy("memory")).toEqual(["memory", filter]);
    expect(shownBy("kernels", kernelParam.to("k"))).toEqual(["kernels", filter]);
    expect(shownBy("ops", opParam.to("b"))).toEqual(["ops", null]);
    expect(shownBy("advice", findingParam.to(null))).toEqual(["advice", filter]);
    expect(shownBy("ops", opParam.to("b"), filterParam.to(filter))).toEqual(["ops", filter]);
  });

  it("does not hide what a link opens: the filters of the tables go, their sorting stays", () => {
    opsTable.value = { sorting: { id: "calls", desc: true }, filters: [{ id: "name", query: "conv" }] };
    kernelsTable.value = { sorting: null, filters: [{ id: "name", query: "gemm" }] };
    goTo("kernels");
    expect([opsTable.value.filters.length, kernelsTable.value.filters.length]).toEqual([1, 1]);
    goTo("ops", opParam.to("b"));
    expect(opsTable.value).toEqual({ sorting: { id: "calls", desc: true }, filters: [] });
  });

  it("leads to every page that shows it; its own page selects it", () => {
    const pages = ["ops", "kernels", "modules", "advice", "tensor_cores", "roofline", "launches", "memory"];
    const own = {
      op: ["ops", opParam],
      op_type: ["op_types", opTypeParam],
      kernel: ["kernels", kernelParam],
      module: ["modules", moduleParam],
    } as const;
    for (const kind of ["op", "op_type", "kernel", "module"] as const) {
      const subject = { kind, id: "x" };
      const links = linksOf(subject);
      // Where a module runs stands on the timeline by itself.
      expect(links.map(({ page }) => page)).toEqual([
        ...(kind === "op_type" ? ["op_types"] : []),
        ...pages,
        ...(kind === "module" ? [] : ["timeline"]),
      ]);
      const [page, param] = own[kind];
      for (const link of links)
        expect(link.changes).toContainEqual(
          filterParam.to(link.page === page || link.page === "timeline" ? null : subject),
        );
      expect(links.find((link) => link.page === page)?.changes).toContainEqual(param.to("x"));
    }
  });
});
