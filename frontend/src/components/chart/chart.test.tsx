import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { places, upwards } from "./axis";
import { Bars } from "./Bars";
import { Chart } from "./Chart";

const VALUES = [10, 30, 20, 0];
let root: HTMLElement;
const onDrag = vi.fn();
const onPick = vi.fn();

function draw(width: number): void {
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(width);
  vi.stubGlobal(
    "ResizeObserver",
    class {
      constructor(private readonly changed: () => void) {}
      observe(): void {
        this.changed();
      }
      disconnect(): void {}
    },
  );
  act(() =>
    render(
      <Chart
        height={100}
        label="four bars"
        x={places(VALUES.map(String))}
        y={(height) => upwards(VALUES, height, String)}
        inputs={[]}
        draw={(plot) => <Bars plot={plot} parts={[{ colour: "red", values: VALUES }]} widest={40} />}
        tip={(plot, x) => ({ title: `bar ${Math.round(plot.x.valueAt(x))}`, lines: [{ label: "<b>", value: "1" }] })}
        zooms
        onDrag={onDrag}
        onPick={onPick}
      />,
      root,
    ),
  );
}

const svg = () => root.querySelector(".chart > svg")!;

/** `share` of the plot's width from its left. */
function point(type: string, share: number, init: object = {}): void {
  const left = Number(root.querySelector(".chart svg svg")!.getAttribute("x"));
  const width = Number(root.querySelector(".chart svg svg")!.getAttribute("width"));
  const where = { clientX: left + share * width, clientY: 40 };
  act(() => {
    const event =
      type === "wheel"
        ? // Without a place in happy-dom.
          Object.assign(new WheelEvent(type, { bubbles: true, cancelable: true }), where, init)
        : new PointerEvent(type, { ...where, bubbles: true });
    svg().dispatchEvent(event);
  });
}

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
  Element.prototype.setPointerCapture = () => undefined;
});

afterEach(() => {
  render(null, root);
  root.remove();
  onDrag.mockReset();
  onPick.mockReset();
  vi.unstubAllGlobals();
});

describe("a chart", () => {
  it("draws nothing in a box without width, as in a hidden tab", () => {
    draw(0);
    expect(root.querySelector("svg")).toBeNull();
    expect(root.querySelector(".chart")!.getAttribute("aria-label")).toBe("four bars");
  });

  it("draws bars of the heights of their values, none for 0", () => {
    draw(400);
    const path = root.querySelector(".chart svg svg path")!.getAttribute("d")!;
    const heights = [...path.matchAll(/M\S+ (\S+?)h\S+?V(\S+?)h/g)].map((match) => Number(match[1]) - Number(match[2]));
    expect(heights).toHaveLength(3);
    expect(heights[1]! / heights[0]!).toBeCloseTo(3, 1);
  });

  it("shows what is under the pointer as text, and hides it when the pointer leaves", () => {
    draw(400);
    point("pointermove", 0.6);
    expect(root.querySelector(".chart-tip")!.textContent).toBe("bar 2<b>1");
    point("pointerleave", 0.6);
    expect(root.querySelector(".chart-tip")).toBeNull();
  });

  it("tells a click from a drag", () => {
    draw(400);
    point("pointerdown", 0.6);
    point("pointerup", 0.6);
    expect(onPick).toHaveBeenCalledTimes(1);
    expect(Math.round(onPick.mock.calls[0]![0])).toBe(2);
    point("pointerdown", 0.1);
    point("pointermove", 0.9);
    point("pointerup", 0.9);
    expect(onPick).toHaveBeenCalledTimes(1);
    const [dragged, done] = onDrag.mock.calls[onDrag.mock.calls.length - 1]!;
    expect([dragged.map((at: number) => Math.abs(Math.round(at))), done]).toEqual([[0, 3], true]);
  });

  it("zooms with Ctrl and the wheel alone, around the pointer, and back", () => {
    draw(400);
    const bars = () => root.querySelector(".chart svg svg path")!.getAttribute("d");
    const before = bars();
    point("wheel", 0.6, { deltaY: -300 });
    expect(bars()).toBe(before);
    point("wheel", 0.6, { deltaY: -300, ctrlKey: true });
    expect(bars()).not.toBe(before);
    expect(root.querySelector(".chart svg svg")!.getAttribute("overflow")).toBe("hidden");
    point("pointermove", 0.6);
    expect(root.querySelector(".chart-tip")!.textContent).toContain("bar 2");
    point("wheel", 0.6, { deltaY: 900, ctrlKey: true });
    expect(bars()).toBe(before);
  });
});
