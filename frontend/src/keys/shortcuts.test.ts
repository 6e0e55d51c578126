import { describe, expect, it, vi } from "vitest";
import { stepped } from "../features/RangePicker";
import { byGroup } from "../shell/keys/KeyHelp";
import { moveRow } from "./rows";
import { Shortcuts } from "./shortcuts";
import { filled } from "../testing/filled";

const press = (key: string, more: KeyboardEventInit & { target?: EventTarget } = {}): KeyboardEvent => {
  const event = new KeyboardEvent("keydown", { key, ...more });
  if (more.target) Object.defineProperty(event, "target", { value: more.target });
  return event;
};

describe("shortcuts", () => {
  const shortcuts = new Shortcuts();
  const claim = (keys: string, label = keys) => shortcuts.claim({ keys, label, group: "g", run: () => {} });
  claim("/");
  claim("mod+k");
  claim("k");
  claim("g k");

  it("tell one key, two keys and keys with Ctrl apart", () => {
    expect(shortcuts.press(press("/"), 0)?.keys).toBe("/");
    expect(shortcuts.press(press("k"), 0)?.keys).toBe("k");
    expect(shortcuts.press(press("g"), 0)).toBeNull();
    expect(shortcuts.press(press("k"), 500)?.keys).toBe("g k");
    expect(shortcuts.press(press("k"), 600)?.keys).toBe("k");
    shortcuts.press(press("g"), 1000);
    expect(shortcuts.press(press("k"), 9000)?.keys).toBe("k");
    expect(shortcuts.press(press("K", { ctrlKey: true }), 0)?.keys).toBe("mod+k");
    expect(shortcuts.press(press("/", { altKey: true, ctrlKey: true }), 0)?.keys).toBe("/");
  });

  it("leave keys alone while someone types", () => {
    for (const tag of ["input", "textarea", "select"]) {
      const field = document.createElement(tag);
      expect(shortcuts.press(press("k", { target: field }), 0)).toBeNull();
      expect(shortcuts.press(press("k", { target: field, ctrlKey: true }), 0)?.keys).toBe("mod+k");
    }
  });

  it("go to the latest that claims them, and back", () => {
    const back = claim("k", "later");
    expect(shortcuts.press(press("k"), 0)?.label).toBe("later");
    expect(shortcuts.all().filter(({ keys }) => keys === "k")).toHaveLength(1);
    back();
    expect(shortcuts.press(press("k"), 0)?.label).toBe("k");
  });

  it("are listed once each", () => {
    const one = (keys: string, label: string) => ({ keys, label, group: "Anywhere", run: () => {} });
    expect(byGroup([one("/", "Search"), one("mod+k", "Search"), one("x", "")])).toEqual([
      ["Anywhere", [{ label: "Search", keys: ["/", "mod+k"] }]],
    ]);
  });
});

it("iterations move as a window that stays in the recording", () => {
  const range = filled("SelectedRange", { first: 0, last: 9, total: 10 });
  expect([stepped(range, 1), stepped(range, -1)]).toEqual([
    { first: 0, last: 0 },
    { first: 9, last: 9 },
  ]);
  expect(stepped({ ...range, first: 2, last: 4 }, 1)).toEqual({ first: 3, last: 5 });
  expect(stepped({ ...range, first: 0, last: 2 }, -1)).toEqual({ first: 0, last: 2 });
});

it("rows: where one is selected the next is selected with it, elsewhere the focus moves", () => {
  const page = document.createElement("main");
  page.innerHTML = `<div class="table"><table>${["a", "b"].map((id) => `<tr class="selectable" id="${id}"><td><button class="link">${id}</button></td></tr>`).join("")}</table></div>`;
  document.body.append(page);
  const clicked = vi.fn();
  for (const row of page.querySelectorAll("tr")) row.addEventListener("click", () => clicked(row.id));
  moveRow(page, 1);
  expect([document.activeElement?.textContent, clicked.mock.calls]).toEqual(["a", []]);
  page.querySelector("#a")!.setAttribute("aria-current", "true");
  moveRow(page, 1);
  expect([document.activeElement?.textContent, clicked.mock.calls]).toEqual(["b", [["b"]]]);
  moveRow(page, 1);
  expect(document.activeElement?.textContent).toBe("b");
  page.remove();
});

it("rows: without a table the focus moves from finding to finding", () => {
  const page = document.createElement("main");
  page.innerHTML = '<button class="finding-line">a</button><button>x</button><button class="finding-line">b</button>';
  document.body.append(page);
  const reached = ([1, 1, 1, -1] as const).map((by) => {
    moveRow(page, by);
    return document.activeElement?.textContent;
  });
  expect(reached).toEqual(["a", "b", "b", "a"]);
  page.remove();
});
