import { render } from "preact";
import { useRef } from "preact/hooks";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ROW_HEIGHT, useVirtualRows, VIRTUAL_ABOVE, type VirtualRows } from "./useVirtualRows";

let root: HTMLElement;
let shown: VirtualRows;

function Box({ count }: { count: number }) {
  const box = useRef<HTMLDivElement>(null);
  shown = useVirtualRows(box, count);
  return <div ref={box} />;
}

const draw = (count: number): Promise<void> => act(() => render(<Box count={count} />, root));
const box = (): HTMLElement => root.firstElementChild as HTMLElement;
const scroll = (row: number): Promise<void> =>
  act(() => {
    box().scrollTop = row * ROW_HEIGHT;
    box().dispatchEvent(new Event("scroll"));
  });
/** The first and the last row drawn, and the rows that the space before and after stands for. */
const drawn = (): number[] => [
  shown.indices[0]!,
  shown.indices.at(-1)!,
  shown.before / ROW_HEIGHT,
  shown.after / ROW_HEIGHT,
];

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(10 * ROW_HEIGHT);
});

afterEach(() => {
  render(null, root);
  root.remove();
  vi.restoreAllMocks();
});

describe("the rows of a long table", () => {
  it("are all drawn up to a limit", async () => {
    await draw(VIRTUAL_ABOVE);
    expect(drawn()).toEqual([0, VIRTUAL_ABOVE - 1, 0, 0]);
  });

  it("are drawn around those in sight, which move in blocks of four", async () => {
    await draw(1000);
    expect(drawn()).toEqual([0, 21, 0, 978]);
    await scroll(100);
    expect(drawn()).toEqual([92, 121, 92, 878]);
    await scroll(103);
    expect(drawn()).toEqual([92, 121, 92, 878]);
    await scroll(104);
    expect(drawn()).toEqual([96, 125, 96, 874]);
    await scroll(990);
    expect(drawn()).toEqual([980, 999, 980, 0]);
  });

  it("are the last ones where fewer are left than were scrolled over", async () => {
    await draw(1000);
    await scroll(900);
    await draw(300);
    expect(drawn()).toEqual([282, 299, 282, 0]);
  });

  it("are scrolled to where they are out of sight", async () => {
    await draw(1000);
    shown.scrollTo(7);
    expect(box().scrollTop).toBe(0);
    shown.scrollTo(8);
    expect(box().scrollTop).toBeCloseTo((8 - 10 / 3) * ROW_HEIGHT);
    shown.scrollTo(4);
    expect(box().scrollTop).toBe(4 * ROW_HEIGHT - (10 * ROW_HEIGHT) / 3);
  });
});
