/**
 * The answers in an exported file. Each block holds what one route answers about the same runs, and is unpacked when something in
 * it is asked for. What a server would have to compute is not there: asking for it is a `NotInFile` with one sentence.
 */
import { ApiError, NotInFile, type FileFacts, type Query, type Route, type Source } from "../api/source";
import type { RunEntry, RunIndex } from "../api/types";
import { searchIn, type Searched } from "./search";

/** A script element with gzipped JSON as base64 in; its text out. */
export type Unpack = (element: Element) => Promise<string>;

interface Contents extends FileFacts {
  blocks: { route: string; runs: string[] }[];
}

interface Packed {
  query: Query;
  answer?: unknown;
  error?: string;
  status?: number;
}

type Answers = Map<string, Packed>;

export class PackedAnswers implements Source {
  readonly file: FileFacts;
  private readonly contents: Contents;
  private readonly unpacked = new Map<number, Promise<Answers>>();

  constructor(
    private readonly root: Document,
    private readonly unpack: Unpack,
  ) {
    this.contents = JSON.parse(root.getElementById("dlprof-contents")!.textContent!) as Contents;
    this.file = this.contents;
  }

  async answer(route: Route, query: Query): Promise<unknown> {
    const { runs } = (await this.found("runs", []))!.get(keyOf({}))!.answer as RunIndex;
    const asked = wholeRuns(route, query, runs);
    if (route === "search") return this.search(String(asked["run"]), String(asked["text"] ?? ""));
    const about = "a.run" in asked ? [asked["a.run"], asked["b.run"]] : "run" in asked ? [asked["run"]] : [];
    const answers = await this.found(route, about.map(String));
    const packed = answers?.get(keyOf(asked));
    if (!packed) throw new NotInFile(absence(route, asked, answers?.size ?? 0));
    if (packed.error !== undefined) throw new ApiError(packed.error, packed.status ?? 0);
    return packed.answer;
  }

  /** The server's search depends on what is typed: here it goes over the pages that are in the file. */
  private async search(run: string, text: string): Promise<unknown> {
    const routes = ["ops", "modules", "kernels", "advice", "report"] as const;
    const pages = await Promise.all(
      routes.map(
        async (route) =>
          [...((await this.found(route, [run]))?.values() ?? [])].find((packed) => packed.answer !== undefined)?.answer,
      ),
    );
    if (pages.includes(undefined)) throw new NotInFile("A page that would be searched is not in this file.");
    return searchIn(
      Object.fromEntries(routes.map((route, place) => [route, pages[place]])) as unknown as Searched,
      text,
    );
  }

  private async found(route: string, runs: string[]): Promise<Answers | null> {
    const place = this.contents.blocks.findIndex(
      (block) => block.route === route && block.runs.join("\n") === runs.join("\n"),
    );
    if (place < 0) return null;
    let answers = this.unpacked.get(place);
    if (!answers) {
      answers = this.unpack(this.root.getElementById(`dlprof-block-${place}`)!).then(
        (text) => new Map((JSON.parse(text) as Packed[]).map((packed) => [keyOf(packed.query), packed])),
      );
      this.unpacked.set(place, answers);
    }
    return answers;
  }
}

/** One spelling of a query, whatever its order; what is null is left out. */
function keyOf(query: Query): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== null);
  return JSON.stringify(pairs.map(([key, value]) => [key, String(value)]).sort(([x], [y]) => (x! < y! ? -1 : 1)));
}

/** What only tells a server how far a growing answer has come, or what to leave out of a sum. */
const WITHOUT_EFFECT = ["have", "set_aside"];

/** The file has the kernels of all ops; the page shows which of them belong to one. */
const OF_ONE: Partial<Record<Route, string[]>> = { kernels: ["op", "op_type", "module"] };

/** The query as the file spells it: the whole of a recording. */
function wholeRuns(route: Route, query: Query, runs: RunEntry[]): Query {
  const asked: Query = {};
  for (const [key, value] of Object.entries(query))
    if (value !== null && !WITHOUT_EFFECT.includes(key) && !OF_ONE[route]?.includes(key)) asked[key] = value;
  for (const side of ["", "a.", "b."]) {
    const run = asked[`${side}run`];
    if (run === undefined) continue;
    const entry = runs.find((candidate) => candidate.run === run);
    if (!entry)
      throw new NotInFile(
        `The run ${run} is not in this file, which holds ${runs.map((other) => other.run).join(", ")}.`,
      );
    const own: Query = { session: entry.session, rank: entry.rank, cycle: entry.cycles[0] ?? 0 };
    for (const [part, value] of Object.entries(own)) {
      if (String(asked[side + part] ?? value) !== String(value)) {
        throw new NotInFile(
          `Of ${run}, this file holds session ${own["session"]}, rank ${own["rank"]}, cycle ${own["cycle"]} alone.`,
        );
      }
      delete asked[side + part];
    }
    const all =
      asked[`${side}first`] === 0 && entry.iterations !== null && asked[`${side}last`] === entry.iterations - 1;
    if (all) for (const end of ["first", "last"]) delete asked[side + end];
    if ([`${side}first`, `${side}last`, `${side}key_node`].some((part) => part in asked))
      throw new NotInFile(wholeOnly(route));
  }
  return asked;
}

const wholeOnly = (route: Route): string =>
  `This file holds ${route.startsWith("compare") ? "comparisons of whole recordings" : "pages about the whole recording"}: other iterations, or iterations cut by another op, take the run itself, in TensorBoard or with tb-dlprof.`;

function absence(route: Route, query: Query, held: number): string {
  if (route === "compare")
    return `This file holds no comparison of ${query["a.run"]} with ${query["b.run"]}; tb-dlprof export makes one of the two runs.`;
  if ((route === "work_detail" || route === "compare_op") && held > 0) {
    return `Of this ${String(query["kind"] ?? "op").replace("_", " ")}, the file holds no details: it has those of the ${held.toLocaleString("en-US")} that come first on the page.`;
  }
  return "This is not in the file, which holds what was most likely to be asked: the run itself, in TensorBoard, answers it.";
}
