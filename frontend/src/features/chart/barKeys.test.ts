import { describe, expect, it } from "vitest";
import { movedBy, spanOf, type Marked } from "./barKeys";

const TOTAL = 10;
const press = (keys: string[], first = 0): Marked | null =>
  keys.reduce<Marked | null>(
    (marked, key) => movedBy(key.replace("Shift+", ""), key.startsWith("Shift+"), marked, first, TOTAL) ?? marked,
    null,
  );

describe("keys on the bars", () => {
  it("begin at the first bar that is selected", () => {
    expect(press(["ArrowRight"], 4)).toEqual({ from: 4, to: 4 });
    expect(press(["ArrowRight", "ArrowRight"], 4)).toEqual({ from: 5, to: 5 });
  });

  it("extend with Shift, over the start and back", () => {
    expect(spanOf(press(["ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight"], 4)!)).toEqual({ first: 4, last: 6 });
    expect(spanOf(press(["ArrowRight", "Shift+ArrowLeft", "Shift+ArrowLeft"], 4)!)).toEqual({ first: 2, last: 4 });
    expect(spanOf(press(["ArrowRight", "Shift+End"], 7)!)).toEqual({ first: 7, last: 9 });
    expect(press(["Shift+ArrowRight", "Home"], 7)).toEqual({ from: 0, to: 0 });
  });

  it("stay within the recording", () => {
    expect(press(["End", "ArrowRight"])).toEqual({ from: 9, to: 9 });
    expect(press(["Home", "ArrowLeft"])).toEqual({ from: 0, to: 0 });
    expect(movedBy("ArrowRight", false, null, -1, 0)).toBeNull();
  });

  it("leave other keys to the page", () => {
    expect(movedBy("Tab", false, { from: 1, to: 2 }, 0, TOTAL)).toBeNull();
    expect(movedBy("a", false, null, 0, TOTAL)).toBeNull();
  });
});
