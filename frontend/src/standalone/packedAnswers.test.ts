import { beforeEach, describe, expect, it } from "vitest";
import { Client } from "../api/client";
import { ApiError, NotInFile, type Query, type Route } from "../api/source";
import { compareQuery, profileQuery } from "../api/queries";
import { runs } from "../testing/fixtures";
import { PackedAnswers } from "./packedAnswers";

const [first, second] = runs.runs;
const A = first!.run;
const B = second!.run;
const CHOICE = { run: A, session: null, rank: null, cycle: null, keyNode: null };
const BLOCKS = [
  {
    route: "runs",
    runs: [],
    answers: [
      {
        query: {},
        answer: {
          ...runs,
          runs: [
            { ...first!, session: "s", rank: 0, cycles: [2], iterations: 10 },
            { ...second!, session: "s", rank: 0, cycles: [2] },
          ],
        },
      },
    ],
  },
  { route: "overview", runs: [A], answers: [{ query: { run: A }, answer: { headline: "whole" } }] },
  { route: "work_detail", runs: [A], answers: [{ query: { run: A, kind: "op", id: "conv" }, answer: { id: "conv" } }] },
  { route: "kernels", runs: [A], answers: [{ query: { run: A }, answer: { scope: null } }] },
  { route: "memory", runs: [A], answers: [{ query: { run: A }, error: "No memory there.", status: 404 }] },
  { route: "compare", runs: [A, B], answers: [{ query: { "a.run": A, "b.run": B }, answer: { headline: "faster" } }] },
  { route: "many_runs", runs: [], answers: [{ query: {}, answer: { rows: 2 } }] },
];
let unpacked: string[];
let client: Client;

beforeEach(() => {
  document.body.innerHTML = "";
  const put = (id: string, value: unknown): void => {
    const element = document.createElement("script");
    element.id = id;
    element.type = "application/json";
    element.textContent = JSON.stringify(value);
    document.body.append(element);
  };
  put("dlprof-contents", {
    title: "t",
    made: "2026-01-02",
    version: "1",
    blocks: BLOCKS.map((block) => ({ route: block.route, runs: block.runs })),
  });
  BLOCKS.forEach((block, place) => {
    put(`dlprof-block-${place}`, block.answers);
  });
  unpacked = [];
  client = new Client(
    new PackedAnswers(document, async (element) => {
      unpacked.push(element.id);
      return element.textContent!;
    }),
  );
});

const get = (route: Route, query: Query): Promise<unknown> => client.get(route, query);

describe("the answers in a file", () => {
  it("has the kernels of all ops where those of one are asked for", async () => {
    const query = { ...profileQuery(CHOICE, null), op: "conv", module: null };
    expect(await client.get("kernels", query)).toEqual({ scope: null });
  });

  it("are unpacked when they are asked for, once", async () => {
    expect(await get("overview", profileQuery(CHOICE, null))).toEqual({ headline: "whole" });
    client.clear();
    await get("overview", profileQuery(CHOICE, null));
    expect(unpacked).toEqual(["dlprof-block-0", "dlprof-block-1"]);
    expect(client.file).toMatchObject({ title: "t", version: "1" });
  });

  it("are found however the question is spelled", async () => {
    const named = { ...CHOICE, session: "s", rank: 0, cycle: 2 };
    expect(await get("overview", profileQuery(named, { first: 0, last: 9 }))).toEqual({ headline: "whole" });
    expect(await get("work_detail", { kind: "op", id: "conv", run: A, first: null })).toEqual({ id: "conv" });
    expect(await get("compare", compareQuery({ ...CHOICE, range: null }, { ...CHOICE, run: B, range: null }))).toEqual({
      headline: "faster",
    });
    expect(await get("many_runs", { base: null, have: 1 })).toEqual({ rows: 2 });
  });

  it("keep what the server refused as its own sentence", async () => {
    await expect(get("memory", { run: A })).rejects.toEqual(new ApiError("No memory there.", 404));
  });

  it.each<[Route, Query, string]>([
    ["overview", profileQuery(CHOICE, { first: 1, last: 2 }), "This file holds pages about the whole recording"],
    ["overview", profileQuery({ ...CHOICE, keyNode: "conv" }, null), "This file holds pages about the whole recording"],
    [
      "compare",
      { "a.run": A, "a.first": 1, "a.last": 1, "b.run": B },
      "This file holds comparisons of whole recordings",
    ],
    ["overview", { run: A, cycle: 1 }, "session s, rank 0, cycle 2 alone"],
    ["overview", { run: "elsewhere" }, "The run elsewhere is not in this file"],
    ["compare", { "a.run": B, "b.run": A }, `This file holds no comparison of ${B} with ${A}`],
    ["work_detail", { run: A, kind: "op", id: "other" }, "it has those of the 1 that come first"],
    ["forecast", { run: A, precision: "bf16", batch_size: 64 }, "This is not in the file"],
  ])("say what is not there: %s %j", async (route, query, sentence) => {
    const asked = get(route, query);
    await expect(asked).rejects.toThrow(sentence);
    await expect(asked).rejects.toBeInstanceOf(NotInFile);
  });
});
