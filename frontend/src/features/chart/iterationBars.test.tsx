import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it, vi } from "vitest";
import { IterationBars } from "./IterationBars";
import { filled, filledAll } from "../../testing/filled";

const bar = (index: number) =>
  filled("IterationBar", {
    index: index * 3,
    last: index * 3 + 2,
    number: index * 3 + 10,
    last_number: index * 3 + 12,
    start_ns: 0,
    duration_ns: 100,
    shortest_ns: 90,
    longest_ns: 120,
    category_ns: [100],
    selected: true,
  });

it("picks all iterations of the bars that are marked", async () => {
  const root = document.createElement("div");
  const onSelect = vi.fn();
  const hidden = new Set<string>();
  const categories = filledAll("Category", [{ key: "cpu", label: "CPU" }]);
  await act(() =>
    render(
      <IterationBars
        name="Iterations"
        iterations={[0, 1, 2, 3].map(bar)}
        categories={categories}
        hidden={hidden}
        stepNs={90}
        onSelect={onSelect}
      />,
      root,
    ),
  );
  expect(root.querySelector(".step-line")!.textContent).toContain("90.0 ns without the profiler");
  const press = (key: string, shiftKey = false): void => {
    act(
      () =>
        void root
          .querySelector(".bars-keys")!
          .dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true })),
    );
  };
  press("ArrowRight");
  press("ArrowRight");
  press("ArrowRight", true);
  expect(root.querySelector('[data-testid="iteration-bars-marked"]')!.textContent).toBe(
    "Iterations 13 to 18; Enter takes them.",
  );
  press("Enter");
  expect(onSelect).toHaveBeenCalledWith({ first: 3, last: 8 });
  render(null, root);
});
