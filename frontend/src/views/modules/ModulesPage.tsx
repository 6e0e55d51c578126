/** The Modules page: the module tree as a table, above it as an icicle or its ops under the roofline; the selected module in a pane. */
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { ModuleRow, ModulesPage as ModulesData, RooflineOp } from "../../api/types";
import { FilterChip } from "../filter/FilterChip";
import { usePageFilter } from "../filter/usePageFilter";
import { CoverageLine } from "../../components/CoverageLine";
import { HeadlineText } from "../HeadlineText";
import { PageHead } from "../../features/PageHead";
import { DataTable } from "../../components/table/DataTable";
import { formatCount } from "../../format/number";
import { moduleColumns } from "./columns";
import { useShownRows } from "../../components/table/useShownRows";
import { ViewNote } from "../explore/ViewNote";
import { workView } from "../explore/workView";
import { RooflineCard } from "../roofline/RooflineCard";
import { ModuleIcicle } from "./ModuleIcicle";
import { WorkPane } from "../explore/WorkPane";
import { ModuleFacts } from "./ModuleFacts";
import { NoModules } from "./NoModules";
import { arrange, buildTree, holdsOp, keyOf, keysAbove, labelOf, openAtFirst } from "./tree";
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

  const view = workView("modules");
  const fitting = useShownRows(columns, rows, modulesTable);
  const filtered = fitting !== rows || own !== null;
  // With those around them, as in the table.
  const kept = useMemo(
    () =>
      filtered
        ? new Set(
            fitting
              .map(keyOf)
              .filter((key) => own === null || own.has(key))
              .flatMap((key) => [key, ...keysAbove(key)]),
          )
        : null,
    [fitting, filtered, own],
  );
  const holding = useMemo(
    () => (filtered ? fitting.map(keyOf).filter((key) => own === null || own.has(key)) : null),
    [fitting, filtered, own],
  );
  return (
    <>
      <ViewNote page="modules" hasGpu={data.has_gpu} />
      {view === "icicle" && (
        <ModuleIcicle data={data} tree={tree} kept={kept} selected={selectedKey} onSelect={select} />
      )}
      {view === "roofline" && data.has_gpu && (
        <RooflineCard
          shows={holding === null ? null : (op) => holding.some((key) => holdsOp(key, roleOf(op)))}
          standsOut={selectedKey === null ? null : (op) => holdsOp(selectedKey, roleOf(op))}
        />
      )}
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
        {selected && (
          <WorkPane
            subject={{ kind: "module", id: keyOf(selected) }}
            title={selected.path || labelOf(selected, data.model)}
            hasGpu={data.has_gpu}
            without="ops"
            onClose={() => assign(moduleParam.to(null))}
          >
            <ModuleFacts row={selected} hasGpu={data.has_gpu} />
          </WorkPane>
        )}
      </div>
    </>
  );
}

/** An op of the roofline by the part of the step that runs it. */
const roleOf = (op: RooflineOp) => ({ module: op.module, role: op.direction || "other" });

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
