/** The Modules page: the module tree as an icicle and as a table, the selected module in a pane next to the table. */
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { ModuleRow, ModulesPage as ModulesData } from "../../api/types";
import { FilterChip } from "../filter/FilterChip";
import { usePageFilter } from "../filter/usePageFilter";
import { Card } from "../../components/Card";
import { number, text } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import { CoverageLine } from "../../components/CoverageLine";
import { HeadlineText } from "../HeadlineText";
import { PageHead } from "../../features/PageHead";
import type { Column } from "../../components/table/columns";
import { DataTable } from "../../components/table/DataTable";
import { DEFINITIONS } from "../../format/definitions";
import { formatCount } from "../../format/number";
import { moduleColumns } from "./columns";
import { Icicle } from "./Icicle";
import { LargestModules } from "./LargestModules";
import { IcicleLegend } from "./IcicleLegend";
import { timeOf, type Device, type Direction } from "./layout";
import { ModulePane } from "./ModulePane";
import { NoModules } from "./NoModules";
import { Switch } from "../../components/Switch";
import { arrange, buildTree, keyAbove, keyOf, keysAbove, labelOf, openAtFirst } from "./tree";
import { assign } from "../../state/param";
import { moduleParam } from "../../state/sharedParams";
import { modulesTable } from "./params";

export function ModulesPage({ data }: { data: ModulesData }) {
  return (
    <>
      <PageHead
        title="Modules"
        headline={data.headline}
        linked={<HeadlineText parts={data.headline_parts} />}
        range={data.range}
      >
        {data.from_stacks && (
          <p class="muted">
            The modules were read from Python stacks: a path names the class and number of each instance, not the
            attribute that holds it.
          </p>
        )}
      </PageHead>
      {data.rows.length === 0 ? (
        <NoModules remedy={data.remedy} />
      ) : (
        <Modules key={`${data.ref.run} ${data.ref.session} ${data.ref.rank}`} data={data} />
      )}
      <CoverageLine coverage={data.coverage} />
    </>
  );
}

function Modules({ data }: { data: ModulesData }) {
  const rows = useMemo(() => [...data.rows, ...data.outside], [data]);
  const tree = useMemo(() => buildTree(rows), [rows]);
  const typed = useMemo(() => data.rows.some((row) => row.path && row.type), [data]);
  const columns = useMemo(
    () => moduleColumns(data.has_gpu, data.model, typed, tree),
    [data.has_gpu, data.model, typed, tree],
  );
  const selected = moduleParam.value !== null ? (tree.byKey.get(moduleParam.value) ?? null) : null;
  const selectedKey = selected ? keyOf(selected) : null;

  const [open, setOpen] = useState(() => openAtFirst(tree, selectedKey));
  // A selected module shows what is in it.
  const reveal = useCallback(
    (key: string): void => setOpen((before) => new Set([...before, key, ...keysAbove(key)])),
    [],
  );
  // A link may be followed while the page is open.
  useEffect(() => {
    if (selectedKey !== null) reveal(selectedKey);
  }, [selectedKey, reveal]);
  const select = (key: string): void => {
    // With the selection, so that the table has the row when it scrolls to it.
    reveal(key);
    assign(moduleParam.to(key));
  };
  const filter = usePageFilter();
  const own = filter.related === null ? null : filter.modules;
  const [only] = own?.size === 1 ? own : [];
  // biome-ignore lint/correctness/useExhaustiveDependencies: only as the filter comes to hold one module: what is selected after that is the reader's choice.
  useEffect(() => {
    // The one module of an op is what its link is for.
    if (only !== undefined && moduleParam.value === null && tree.byKey.has(only)) select(only);
  }, [only]);
  const order = useCallback(
    (sorted: ModuleRow[], filtered: boolean) =>
      own === null
        ? arrange(tree, open, sorted, filtered)
        : arrange(
            tree,
            open,
            sorted.filter((row) => own.has(keyOf(row))),
            true,
          ),
    [tree, open, own],
  );

  const [device, setDevice] = useState<Device>(data.has_gpu ? "gpu" : "cpu");
  const [direction, setDirection] = useState<Direction>("both");
  const top = topOf(selectedKey, tree.below);
  const icicle = useMemo(() => icicleColumns(data.model, device, direction), [data.model, device, direction]);
  const drawn = useMemo(
    () =>
      rows.filter(
        (row) =>
          (keyOf(row) === top || keysAbove(keyOf(row)).includes(top)) && (timeOf(row, device, direction) ?? 0) > 0,
      ),
    [rows, top, device, direction],
  );
  return (
    <>
      <Card title="Time by module" class="modules-icicle">
        <div class="modules-bar">
          <Path shown={top} label={(key) => labelOf(tree.byKey.get(key)!, data.model)} onSelect={select} />
          {data.has_gpu && (
            <Switch
              label="Time of"
              value={device}
              choices={[
                ["gpu", "GPU time"],
                ["cpu", "CPU time"],
              ]}
              onChange={setDevice}
            />
          )}
          <Switch
            label="Pass"
            value={direction}
            choices={[
              ["both", "Both"],
              ["forward", "Forward"],
              ["backward", "Backward"],
            ]}
            onChange={setDirection}
          />
        </div>
        <LargestModules tree={tree} top={top} device={device} direction={direction} onSelect={select} />
        <Drawing name="Time by module" columns={icicle} rows={drawn}>
          <Icicle
            tree={tree}
            model={data.model}
            hasGpu={data.has_gpu}
            top={top}
            selected={selectedKey}
            device={device}
            direction={direction}
            onSelect={select}
          />
          <IcicleLegend hasGpu={data.has_gpu} device={device} direction={direction} />
        </Drawing>
      </Card>
      <FilterChip
        filter={filter}
        shown={own === null ? rows.length : rows.filter((row) => own.has(keyOf(row))).length}
        known={rows.length}
        of="modules, and those around them"
      />
      <div class={selected ? "split" : ""}>
        <DataTable
          name={`modules ${data.ref.run}`}
          testId="modules-table"
          fill
          options={modulesTable}
          columns={columns}
          rows={rows}
          rowId={keyOf}
          selected={selectedKey}
          onSelect={(row) => (keyOf(row) === selectedKey ? assign(moduleParam.to(null)) : select(keyOf(row)))}
          arrange={order}
          actions={
            <>
              {data.total_rows > data.rows.length && (
                <span data-testid="modules-left-out">
                  {formatCount(data.total_rows - data.rows.length)} modules with the least time are left out
                </span>
              )}
              <button type="button" class="button button-small" onClick={() => setOpen(new Set(tree.below.keys()))}>
                Expand all
              </button>
              <button type="button" class="button button-small" onClick={() => setOpen(new Set(["."]))}>
                Collapse
              </button>
            </>
          }
          lead={(row) => (
            <Fold
              row={row}
              open={open}
              label={labelOf(row, data.model)}
              foldable={tree.below.has(keyOf(row))}
              onChange={setOpen}
            />
          )}
        />
        {selected && <ModulePane row={selected} model={data.model} hasGpu={data.has_gpu} />}
      </div>
    </>
  );
}

/** What the icicle is drawn from. */
function icicleColumns(model: string, device: Device, direction: Direction): Column<ModuleRow>[] {
  const of = `${device.toUpperCase()} time${direction === "both" ? "" : `, ${direction}`}`;
  return [
    text("Module", (row) => row.path || model, DEFINITIONS.modulePath),
    text("Type", (row) => row.type, DEFINITIONS.moduleType),
    { ...number<ModuleRow>(of, "ns", (row) => timeOf(row, device, direction)), sums: true },
    { ...number<ModuleRow>("Eligible", "ns", (row) => row.eligible_ns, DEFINITIONS.moduleEligible), sums: true },
    number("On Tensor Cores", "percent", (row) => row.utilization_percent, DEFINITIONS.moduleUtilization),
  ];
}

/** The module to draw over the full width: the selected one, or the one that holds it where it holds none itself. */
function topOf(selected: string | null, below: ReadonlyMap<string, unknown>): string {
  if (selected === null) return ".";
  return below.has(selected) ? selected : (keyAbove(selected) ?? ".");
}

/** The modules around the one shown, each a way back to it. */
function Path({
  shown,
  label,
  onSelect,
}: {
  shown: string;
  label: (key: string) => string;
  onSelect: (key: string) => void;
}) {
  return (
    <nav class="modules-path" aria-label="Modules around this one" data-testid="modules-path">
      {keysAbove(shown)
        .reverse()
        .map((key) => (
          <span key={key}>
            <button type="button" class="link" onClick={() => onSelect(key)}>
              {label(key)}
            </button>{" "}
            ›
          </span>
        ))}
      <strong>{label(shown)}</strong>
    </nav>
  );
}

/** Indentation of a row and, where it holds others, the button that shows or hides them. */
function Fold({ row, open, label, foldable, onChange }: FoldProps) {
  const key = keyOf(row);
  const level = keysAbove(key).length;
  // Deep trees indent less and less, or the names would leave their column.
  const indent = 14 * Math.min(level, 8) + 4 * Math.max(0, level - 8);
  if (!foldable) return <span class="fold-none" style={{ marginLeft: `${indent}px` }} />;
  const isOpen = open.has(key);
  return (
    <button
      type="button"
      class="fold"
      style={{ marginLeft: `${indent}px` }}
      aria-expanded={isOpen}
      aria-label={`${isOpen ? "Hide" : "Show"} what is in ${label}`}
      onClick={(event) => {
        event.stopPropagation();
        const next = new Set(open);
        if (!next.delete(key)) next.add(key);
        onChange(next);
      }}
    >
      {isOpen ? "▾" : "▸"}
    </button>
  );
}

interface FoldProps {
  row: ModuleRow;
  open: ReadonlySet<string>;
  label: string;
  foldable: boolean;
  onChange: (open: Set<string>) => void;
}
