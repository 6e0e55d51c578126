import { describe, expect, it, vi } from "vitest";
import type { TimelineLane, TimelinePage } from "../../api/types";
import { shorten, tickText } from "./draw";
import { spanText } from "./Figure";
import { foldedAtFirst, GUTTER_FROM, layOut, lineAt, lineTop } from "./layout";
import { chunksIn, farthest, LOAD_ALL_UP_TO, nextChunk } from "./loader";
import { decodeMatches, inOrder, spotOfMatch } from "./matches";
import { eventAt, firstAbove, neighbour, placeOf, Timeline, type Place } from "./model";
import { rgb, textOn, themeOf } from "./palette";
import { paintGaps, paintLane } from "./pixels";
import { inView } from "./TimelineFiles";
import { clamp, CLOSEST_NS, fit, pan, reveal, stepOf, ticks, whole, zoom } from "./viewport";
import { filled, filledAll, type Given } from "../../testing/filled";

const TRACKS = filledAll("TimelineTrack", [
  { key: "g:0:7", kind: "stream", source: "g", label: "GPU 0, stream 7", detail: "", gpu: 0, levels: 1 },
  { key: "c:0", kind: "thread", source: "c", label: "CPU thread 0: training", detail: "", gpu: null, levels: 3 },
  { key: "c:2", kind: "thread", source: "c", label: "CPU thread 2: CUDA calls", detail: "", gpu: null, levels: 2 },
]);

/** Events as [id, start, duration, name]. */
function lane(track: number, level: number, events: [number, number, number, number][]): TimelineLane {
  const difference = (values: number[]): number[] => values.map((value, index) => value - (values[index - 1] ?? 0));
  return filled("TimelineLane", {
    track,
    level,
    id: difference(events.map(([id]) => id)),
    start: difference(events.map(([, start]) => start)),
    duration: events.map(([, , duration]) => duration),
    name: events.map(([, , , name]) => name),
  });
}

function timeline(lanes: TimelineLane[], rest: Given<TimelinePage> = {}): Timeline {
  const page = filled("TimelinePage", {
    tracks: TRACKS,
    window_ns: 10_000,
    names: [
      { index: 0, label: "gemm", kind: "tensor_core", other: false },
      { index: 2, label: "add", kind: "forward", other: false },
      { index: 3, label: "add", kind: "forward", other: true },
    ],
    kinds: ["forward", "tensor_core"],
    bins: 10,
    segments: [],
    chunks: [],
    lanes,
    iteration: {
      index: 0,
      number: 3,
      duration_ns: 9_000,
      start_ns: 1000,
      stop_ns: 10_000,
      host_start_ns: 0,
      host_stop_ns: 8000,
    },
    ...rest,
  });
  return new Timeline(page);
}

const named = (of: Timeline, place: Place | null): string | null => place && of.idOf(place);

describe("events", () => {
  it("come out of differences, late chunks with the first answer", () => {
    const made = timeline(
      [
        lane(0, 0, [
          [5, 100, 50, 0],
          [9, 400, 10, 0],
        ]),
      ],
      { chunks: [{ start_ns: 200, stop_ns: 300, events: 1 }] },
    );
    expect([made.complete, made.missing(0, 1000)]).toEqual([false, [[0, 1000]]]);
    made.addChunk(
      filled("TimelineEventsPage", {
        chunk: 0,
        names: [{ index: 4, label: "copy", kind: "memory", other: false }],
        lanes: [lane(0, 0, [[7, 200, 100, 4]])],
      }),
    );
    made.addChunk(filled("TimelineEventsPage", { chunk: 0, names: [], lanes: [lane(0, 0, [[7, 200, 100, 4]])] }));
    expect([made.complete, made.missing(0, 1000), made.lane(0, 0).blocks.length]).toEqual([true, [], 2]);
    const place = eventAt(made.lane(0, 0), 250, 0)!;
    expect(made.spotOf(place)).toEqual({
      id: "g7",
      track: 0,
      level: 0,
      label: "copy",
      kind: "memory",
      start_ns: 200,
      duration_ns: 100,
    });
    made.dropChunk(0);
    expect(eventAt(made.lane(0, 0), 250, 0)).toBeNull();
  });

  it("are found under a moment and near it, the inner one where they overlap", () => {
    const made = timeline([
      lane(1, 0, [
        [1, 0, 1000, 2],
        [2, 300, 100, 2],
        [3, 2000, 0, 2],
      ]),
    ]);
    const at = (time: number, slack = 0): string | null => named(made, eventAt(made.lane(1, 0), time, slack));
    expect([at(100), at(350), at(999), at(1500), at(1995, 10), at(1020, 30)]).toEqual([
      "c1",
      "c2",
      "c1",
      null,
      "c3",
      "c1",
    ]);
  });

  it("follow each other over the borders of answers", () => {
    const made = timeline([
      lane(1, 0, [
        [1, 0, 500, 2],
        [4, 900, 300, 2],
      ]),
    ]);
    made.addChunk(
      filled("TimelineEventsPage", {
        chunk: 0,
        names: [],
        lanes: [
          lane(1, 0, [
            [2, 500, 10, 2],
            [3, 500, 0, 2],
          ]),
        ],
      }),
    );
    const walk = (step: 1 | -1): (string | null)[] => {
      const seen: (string | null)[] = [];
      for (let place = eventAt(made.lane(1, 0), step > 0 ? 0 : 1000, 0); place; place = neighbour(place, step))
        seen.push(named(made, place));
      return seen;
    };
    expect(walk(1)).toEqual(["c1", "c2", "c3", "c4"]);
    expect(walk(-1)).toEqual(["c4", "c3", "c2", "c1"]);
    const spot = filled("TimelineSpot", { id: "c3", track: 1, start_ns: 500 });
    expect(named(made, placeOf(made, spot))).toBe("c3");
    expect(placeOf(made, { ...spot, track: -1 })).toBeNull();
  });

  it("are searched, not walked", () => {
    expect([0, 10, 15, 40].map((limit) => firstAbove(Float64Array.from([10, 20, 30]), limit))).toEqual([0, 1, 1, 3]);
  });
});

describe("matches", () => {
  it("go in order of time over all rows, with the names of what is loaded", () => {
    const made = timeline([lane(1, 0, [[8, 700, 10, 2]])]);
    const found = decodeMatches(
      filled("TimelineMatches", {
        count: 3,
        shown: 3,
        on_gpu: 1,
        gpu_ns: 5,
        first: null,
        lanes: [
          { track: 0, level: [0], id: [5], start: [750], duration: [5] },
          { track: 1, level: [0, 2], id: [8, 1], start: [700, 100], duration: [10, 1] },
        ],
      }),
    );
    expect(
      inOrder(found)
        .map(({ track, index }) => spotOfMatch(made, found, track, index))
        .map(({ id, label, start_ns }) => [id, label, start_ns]),
    ).toEqual([
      ["c8", "add", 700],
      ["g5", "", 750],
      ["c9", "", 800],
    ]);
    expect(found.byTrack.get(1)!.ids).toEqual(new Set([8, 9]));
  });
});

describe("what can be downloaded", () => {
  it("is what is in view, by row and time", () => {
    const made = timeline([
      lane(1, 0, [
        [1, 0, 5000, 2],
        [3, 6000, 10, 2],
      ]),
      lane(0, 0, [[9, 4000, 100, 0]]),
    ]);
    made.addChunk(filled("TimelineEventsPage", { chunk: 0, names: [], lanes: [lane(1, 0, [[2, 5500, 10, 2]])] }));
    expect(inView(made, { span: { from: 4500, to: 6005 } }).map(({ id }) => id)).toEqual(["c1", "c2", "c3"]);
    expect(inView(made, { span: { from: 0, to: 4050 } }).map(({ id }) => id)).toEqual(["g9", "c1"]);
  });
});

describe("what is drawn of idle gaps", () => {
  function painted(events: [number, number, number, number][]) {
    const painter = { wide: vi.fn(), part: vi.fn() };
    paintGaps(timeline([lane(1, 0, events)]).lane(1, 0), whole(10_000), 100, painter);
    return {
      wide: painter.wide.mock.calls.map(([, index, x0, x1]) => [index, x0, x1]),
      parts: painter.part.mock.calls as [number, number, number][],
    };
  }

  it("is as wide as it is, and below two pixels its share of each pixel", () => {
    const { wide, parts } = painted([
      [1, 0, 1000, 2],
      [2, 5000, 10, 2],
      [3, 5050, 30, 3],
      [4, 6090, 20, 2],
    ]);
    expect(wide).toEqual([[0, 0, 10]]);
    expect(parts.map(([name, pixel, share]) => [name, pixel, Number(share.toFixed(6))])).toEqual([
      [3, 50, 0.4], // a tenth and three tenths, named after the longer
      [2, 60, 0.1],
      [2, 61, 0.1],
    ]);
  });

  it("has the area of the time, however many gaps there are", () => {
    // 1 % idle: a gap of 1 ns in each 100.
    const { wide, parts } = painted(Array.from({ length: 100 }, (_, index) => [index, index * 100, 1, 2]));
    expect(wide).toEqual([]);
    expect(parts.reduce((sum, [, , share]) => sum + share, 0)).toBeCloseTo(0.01 * 100);
  });
});

describe("the axis of the opened view", () => {
  it("begins and ends with the step, and says what is before it", () => {
    const made = timeline([]);
    const step = stepOf(made.page.iteration, made.windowNs);
    expect(step).toEqual({ from: 1000, to: 10_000 });
    expect(spanText(made, step)).toBe(
      "Shows the step on the GPU, 9.00 µs. The CPU began it 1.00 µs before: Whole shows that, too",
    );
    expect(spanText(made, whole(10_000))).toBe("Shows 10.0 µs of 10.0 µs");
    expect([made.sinceStep(1000), made.sinceStep(0)]).toEqual([0, -1000]);
  });
});

describe("what is drawn of a line", () => {
  function painted(made: Timeline, span = whole(10_000), pixels = 100) {
    const painter = { wide: vi.fn(), run: vi.fn() };
    const seen = paintLane(made.lane(1, 0), span, pixels, painter);
    return {
      seen,
      wide: painter.wide.mock.calls.map(([, index, x0, x1]) => [index, x0, x1]),
      runs: painter.run.mock.calls,
    };
  }

  it("is each wide event, and pixels of the longest of the others", () => {
    const made = timeline([
      lane(1, 0, [
        [1, 0, 1000, 2],
        [2, 1000, 10, 2],
        [3, 1050, 40, 3],
        [4, 1100, 100, 3],
        [5, 5000, 50, 2],
      ]),
    ]);
    expect(painted(made)).toEqual({
      seen: 5,
      wide: [[0, 0, 10]],
      runs: [
        [3, 10, 11, 3], // half of this pixel is covered, most of it by event 3
        [3, 11, 12, 4],
        [2, 50, 51, 3],
      ],
    });
  });

  it("takes the first of equally long events of a pixel", () => {
    const made = timeline([
      lane(1, 0, [
        [1, 1050, 0, 2],
        [2, 1060, 0, 3],
      ]),
    ]);
    expect(painted(made)).toEqual({ seen: 2, wide: [], runs: [[2, 10, 11, 1]] });
  });

  it("is only what is in view, and what reaches into it", () => {
    const made = timeline([
      lane(1, 0, [
        [1, 0, 5000, 2],
        [2, 100, 10, 2],
        [3, 6000, 10, 2],
        [4, 9000, 10, 2],
      ]),
    ]);
    const { seen, wide, runs } = painted(made, { from: 4000, to: 8000 });
    expect([seen, wide, runs.map(([name, x0]) => [name, x0])]).toEqual([3, [[0, -100, 25]], [[2, 50]]]);
  });

  it("is at most one call for each pixel, of 100,000 events too", () => {
    const made = timeline([
      lane(
        1,
        0,
        Array.from(
          { length: 100_000 },
          (_, at) => [at, at / 10, 0.05, 2 + (at % 2)] as [number, number, number, number],
        ),
      ),
    ]);
    const { seen, wide, runs } = painted(made, whole(10_000), 2000);
    expect([seen, wide]).toEqual([100_000, []]);
    expect(runs.length).toBeLessThanOrEqual(2000);
    expect(runs.at(-1)![2]).toBe(2000);
  });
});

describe("the visible span", () => {
  it("stays inside the window and no closer than the clocks tell", () => {
    expect(clamp({ from: -500, to: 500 }, 10_000)).toEqual({ from: 0, to: 1000 });
    expect(clamp({ from: 9500, to: 10_500 }, 10_000)).toEqual({ from: 9000, to: 10_000 });
    expect(clamp({ from: 500, to: 500 }, 10_000)).toEqual({ from: 500 - CLOSEST_NS / 2, to: 500 + CLOSEST_NS / 2 });
    expect(zoom(whole(100), 0.1, 0.5, 100)).toEqual({ from: 0, to: 100 });
  });

  it("keeps the moment under the pointer when it zooms", () => {
    expect(zoom({ from: 2000, to: 6000 }, 0.5, 0.25, 10_000)).toEqual({ from: 2500, to: 4500 });
    expect(pan({ from: 2000, to: 6000 }, 0.5, 10_000)).toEqual({ from: 4000, to: 8000 });
    expect(pan({ from: 2000, to: 6000 }, 5, 10_000)).toEqual({ from: 6000, to: 10_000 });
  });

  it("goes to an event with room around it, and not where it is seen already", () => {
    expect(fit(4000, 5000, 10_000)).toEqual({ from: 3000, to: 6000 });
    expect(reveal({ from: 0, to: 4000 }, 1000, 1500, 10_000)).toEqual({ from: 0, to: 4000 });
    expect(reveal({ from: 0, to: 4000 }, 7000, 7500, 10_000)).toEqual({ from: 5250, to: 9250 });
    // An event within 2 % of an edge counts as out of sight.
    const span = { from: 2000, to: 6000 };
    expect([reveal(span, 1900, 2080, 10_000), reveal(span, 1900, 2090, 10_000)]).toEqual([{ from: 0, to: 4000 }, span]);
    expect([reveal(span, 5920, 6100, 10_000), reveal(span, 5910, 6100, 10_000)]).toEqual([
      { from: 4010, to: 8010 },
      span,
    ]);
  });

  it("has a ruler of round moments", () => {
    expect(ticks({ from: 120, to: 1010 }, 900, 110)).toEqual([200, 400, 600, 800, 1000]);
    expect(ticks({ from: -250, to: 150 }, 400, 110)).toEqual([-200, 0]);
    expect([tickText(-200_000_000, 5e7), tickText(-0, 5e7)]).toEqual(["-200 ms", "0"]);
    expect([tickText(0, 500), tickText(12_350_000, 50_000), tickText(2_000_000_000, 5e8), tickText(1500, 500)]).toEqual(
      ["0", "12.35 ms", "2.0 s", "1.5 µs"],
    );
  });
});

describe("the rows", () => {
  it("have labels next to them where there is room, and one line where they are folded", () => {
    const folded = foldedAtFirst(TRACKS);
    expect([...folded]).toEqual(["c:2"]);
    const wide = layOut(TRACKS, folded, GUTTER_FROM);
    const narrow = layOut(TRACKS, folded, 360);
    expect([wide.gutter > 0, narrow.gutter, wide.rows.map((row) => row.lines)]).toEqual([true, 0, [1, 3, 1]]);
    const { top } = lineTop(wide, 1, 2)!;
    expect([lineAt(wide, top + 1), lineAt(wide, wide.height + 5), lineAt(narrow, 2)]).toEqual([
      { track: 1, level: 2 },
      null,
      null,
    ]);
    // A line that is folded away is stood for by the one that shows.
    expect(lineTop(wide, 2, 1)).toEqual(lineTop(wide, 2, 0));
  });

  it("shorten names, paths from their beginning", () => {
    expect([
      shorten("conv2d", false, 100, 60),
      shorten("layer1.0.conv1", true, 60, 140),
      shorten("linear", false, 35, 60),
      shorten("linear", false, 20, 60),
    ]).toEqual(["conv2d", "…conv1", "li…", ""]);
  });
});

describe("parts that are loaded later", () => {
  const chunks = (count: number) =>
    Array.from({ length: count }, (_, index) =>
      filled("TimelineChunk", { start_ns: 100 * index, stop_ns: 100 * index + 120, events: 9 }),
    );
  const none = (): boolean => false;

  it("come with what is in view first", () => {
    expect(nextChunk(chunks(5), none, { from: 210, to: 290 })).toBe(2);
    expect(nextChunk(chunks(5), (chunk) => chunk === 2 || chunk === 1, { from: 210, to: 290 })).toBe(3);
    expect(nextChunk(chunks(2), () => true, whole(200))).toBeNull();
  });

  it("stay away where there are too many to be looked at", () => {
    const many = chunks(LOAD_ALL_UP_TO + 6);
    expect(nextChunk(many, none, whole(3000))).toBeNull();
    expect(nextChunk(many, none, { from: 250, to: 260 })).toBe(2);
    expect([chunksIn(many, { from: 210, to: 215 }), farthest(many, [1, 20, 7], { from: 0, to: 100 })]).toEqual([
      [1, 2],
      20,
    ]);
  });
});

describe("colours", () => {
  it("carry text that can be read, and pale ones that stay apart from the ground", () => {
    const theme = themeOf(
      (property) =>
        property === "--surface" ? "#ffffff" : property === "--c-forward" ? "#5b4fb5" : "rgb(240, 200, 30)",
      ["forward", "backward"],
      "12px x",
    );
    expect([
      theme.of["forward"]!.own[3],
      theme.of["forward"]!.ownText,
      theme.of["backward"]!.ownText,
      theme.of["forward"]!.paleText,
    ]).toEqual(["rgb(91,79,181)", "#ffffff", "#10151d", "#10151d"]);
    expect(theme.of["forward"]!.pale[3]).not.toBe(theme.of["forward"]!.own[0]);
    expect([rgb("#0a0B0c"), rgb("hsl(1)"), textOn([0, 0, 0])]).toEqual([[10, 11, 12], [128, 128, 128], "#ffffff"]);
  });
});
