import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Column } from "./columns";
import { DataTable } from "./DataTable";
import { AS_AT_FIRST, type TableOptions } from "./model";
import { TableCard } from "./TableCard";
import { columnsOf, tasksOf, type Shown } from "./tasks";

interface Row {
  name: string;
  share: number | null;
  cpu: number;
}

const LONG = "features.denseblock1.denselayer1.conv1/conv2d";
const COLUMNS: Column<Row>[] = [
  { id: "name", header: "Op", definition: "", value: (row) => row.name, width: "1px" },
  {
    id: "share",
    header: "GPU %",
    definition: "",
    value: (row) => row.share,
    unit: "percent",
    bar: true,
    tasks: ["time"],
    width: "1px",
  },
  { id: "cpu", header: "CPU", definition: "", value: (row) => row.cpu, unit: "ns", tasks: ["cpu"], width: "1px" },
  { id: "rest", header: "Rest", definition: "", value: () => "x", width: "1px" },
];
const ROWS: Row[] = [
  { name: LONG, share: 20, cpu: 5 },
  { name: "relu", share: 5, cpu: 9 },
  { name: "cat", share: null, cpu: 7 },
  { name: "add", share: -2, cpu: 1 },
];

let root: HTMLElement;
let options: TableOptions & { task: { value: Shown | null } };

const draw = (): void => {
  act(() =>
    render(
      <DataTable
        name="ops"
        columns={COLUMNS}
        rows={ROWS}
        rowId={(row) => row.name}
        options={options}
        onSelect={() => {}}
      />,
      root,
    ),
  );
};
const heads = (): string[] => [...root.querySelectorAll("th .sort")].map((head) => head.textContent?.trim() ?? "");
const click = (element: Element): void => {
  act(() => (element as HTMLElement).click());
  draw();
};

beforeEach(() => {
  options = { value: AS_AT_FIRST, task: { value: null } };
  root = document.createElement("div");
  document.body.append(root);
  draw();
});

afterEach(() => {
  render(null, root);
  root.remove();
});

describe("a table on the page", () => {
  it("shows the columns of a task, and those it is sorted or filtered by", () => {
    expect(heads()).toEqual(["Op", "GPU %"]);
    const buttons = [...root.querySelectorAll('[data-testid="table-columns"] button')];
    expect(buttons.map((button) => button.textContent)).toEqual(["Time", "CPU", "All"]);
    click(buttons[1]!);
    expect(options.task.value).toBe("cpu");
    expect(heads()).toEqual(["Op", "CPU"]);
    options.value = { sorting: null, filters: [{ id: "rest", query: "x" }] };
    draw();
    expect(heads()).toEqual(["Op", "CPU", "Rest"]);
    // A task of other tables.
    options.task.value = "shapes";
    options.value = AS_AT_FIRST;
    draw();
    expect(heads()).toEqual(["Op", "GPU %"]);
    expect(tasksOf(COLUMNS.slice(0, 1))).toEqual([]);
    expect(columnsOf(COLUMNS, "all", new Set())).toBe(COLUMNS);
  });

  it("has filters when they are asked for, and as long as one is set", () => {
    const toggle = (): Element => root.querySelector('[data-testid="filter-toggle"]')!;
    expect(root.querySelectorAll(".filter")).toHaveLength(0);
    click(toggle());
    expect(root.querySelectorAll(".filter")).toHaveLength(2);
    click(toggle());
    expect(root.querySelectorAll(".filter")).toHaveLength(0);
    options.value = { sorting: null, filters: [{ id: "name", query: "relu" }] };
    draw();
    expect(root.querySelectorAll(".filter")).toHaveLength(2);
    expect(root.querySelectorAll("tbody tr")).toHaveLength(1);
    click(toggle());
    expect(options.value.filters).toEqual([]);
    expect(root.querySelectorAll(".filter")).toHaveLength(0);
  });

  it("draws a bar behind a share, full for the largest, none for what is unknown or below 0", () => {
    const bars = [...root.querySelectorAll<HTMLElement>("tbody td:nth-child(2)")].map((cell) =>
      cell.style.getPropertyValue("--bar"),
    );
    expect(bars).toEqual(["100%", "25%", "", ""]);
  });

  it("cuts a long name in its middle and says it whole", () => {
    const [long, short] = [...root.querySelectorAll("tbody tr td:first-child")];
    expect(long!.querySelector(".cut-tail")!.textContent).toBe("er1.conv1/conv2d".slice(-15));
    expect(long!.textContent).toBe(LONG);
    expect(long!.getAttribute("title")).toBe(LONG);
    expect(long!.querySelector("button")!.getAttribute("aria-label")).toBe(LONG);
    expect(short!.querySelector(".cut-tail")).toBeNull();
    expect(short!.querySelector("button")!.getAttribute("aria-label")).toBeNull();
  });
});

describe("a card that is one table", () => {
  it("is there where the table has rows, below its title", () => {
    const card = (rows: Row[]) => (
      <TableCard title="Ops" testId="ops" name="ops" columns={COLUMNS} rows={rows} rowId={(row) => row.name} />
    );
    act(() => render(card(ROWS), root));
    expect(root.querySelector('[data-testid="ops"] h2')?.textContent).toBe("Ops");
    expect(root.querySelectorAll("table tbody tr").length).toBeGreaterThanOrEqual(ROWS.length);
    act(() => render(card([]), root));
    expect(root.innerHTML).toBe("");
  });
});
