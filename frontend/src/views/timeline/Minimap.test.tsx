import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { markSpan, Minimap } from "./Minimap";
import type { Timeline } from "./model";
import type { Span } from "./viewport";

const timeline = { windowNs: 1000, page: { kinds: [] }, tracks: [] } as unknown as Timeline;
let root: HTMLElement;
let spans: Span[];

/** One pixel is 1 ns. */
function draw(span: Span): void {
  act(() =>
    render(
      <Minimap
        timeline={timeline}
        spanNow={() => span}
        mark={{ current: null }}
        gutter={100}
        width={1100}
        theme="light"
        loaded={0}
        onSpan={(next) => spans.push(next)}
      />,
      root,
    ),
  );
}

const pointer = (type: string, clientX: number): void => {
  root.firstElementChild!.dispatchEvent(Object.assign(new Event(type, { bubbles: true }), { clientX, pointerId: 1 }));
};

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
  spans = [];
  Object.assign(HTMLElement.prototype, { setPointerCapture: vi.fn() });
});

afterEach(() => {
  render(null, root);
  root.remove();
});

describe("the strip of the whole window", () => {
  it("marks what a drag outside of the mark covers, in either direction", () => {
    draw({ from: 100, to: 300 });
    pointer("pointerdown", 600);
    for (const at of [603, 700, 500, 1200]) pointer("pointermove", at);
    pointer("pointerup", 1200);
    pointer("pointermove", 900);
    expect(spans).toEqual([
      { from: 600, to: 700 },
      { from: 500, to: 600 },
      { from: 600, to: 1000 },
    ]);
  });

  it("moves the mark with a drag of it", () => {
    draw({ from: 100, to: 300 });
    pointer("pointerdown", 200);
    pointer("pointermove", 250);
    pointer("pointerup", 250);
    expect(spans).toEqual([{ from: 150, to: 350 }]);
  });

  it("moves the mark to a click outside of it", () => {
    draw({ from: 100, to: 300 });
    pointer("pointerdown", 800);
    pointer("pointerup", 802);
    pointer("pointerdown", 200);
    pointer("pointerup", 200);
    expect(spans).toEqual([{ from: 700, to: 900 }]);
  });

  it("marks another part where all is in view", () => {
    draw({ from: 0, to: 1000 });
    pointer("pointerdown", 200);
    pointer("pointermove", 250);
    expect(spans).toEqual([{ from: 200, to: 250 }]);
  });

  it("shows a mark that can be taken, however short the span is", () => {
    const mark = document.createElement("div");
    markSpan(mark, { from: 250, to: 500 }, 1000, 200);
    expect([mark.style.width, mark.style.transform]).toEqual(["50px", "translateX(50px)"]);
    markSpan(mark, { from: 999, to: 1000 }, 1000, 200);
    expect([mark.style.width, mark.style.transform]).toEqual(["6px", "translateX(194px)"]);
  });
});
