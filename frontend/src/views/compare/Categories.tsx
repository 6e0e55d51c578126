/** The time categories of both runs as two bars on one scale, and the values as a table. */
import type { ComparePage, Slice } from "../../api/types";
import { number, text } from "../../components/export/columns";
import { Drawing } from "../../components/export/Drawing";
import type { Column } from "../../components/table/columns";
import { StackedBar, sumNs } from "../../components/StackedBar";
import { Defined } from "../../components/Term";
import { Value } from "../../components/Value";
import { colourOf } from "../../format/colours";
import { DEFINITIONS, SLICES } from "../../format/definitions";
import { exactNs, formatNs, formatNsDifference } from "../../format/duration";

interface Row {
  label: string;
  before: number | null;
  after: number | null;
}

const COLUMNS: Column<Row>[] = [
  text("Category", (row) => row.label),
  number("Base", "ns", (row) => row.before, DEFINITIONS.perIteration),
  number("Candidate", "ns", (row) => row.after, DEFINITIONS.perIteration),
  number(
    "Difference",
    "ns",
    ({ before, after }) => (before === null || after === null ? null : after - before),
    DEFINITIONS.difference,
  ),
];

export function Categories({ data }: { data: ComparePage }) {
  const scale = Math.max(sumNs(data.a_categories), sumNs(data.b_categories), 1);
  const b = new Map(data.b_categories.map((slice) => [slice.key, slice]));
  const keys: Slice[] = [
    ...data.a_categories,
    ...data.b_categories.filter((slice) => !data.a_categories.some((a) => a.key === slice.key)),
  ];
  const a = new Map(data.a_categories.map((slice) => [slice.key, slice]));
  const rows = keys.map(({ key, label }) => ({
    label,
    before: a.get(key)?.value_ns ?? null,
    after: b.get(key)?.value_ns ?? null,
  }));
  return (
    <Drawing name="Time per iteration by category" columns={COLUMNS} rows={rows}>
      <div class="compare-bars">
        {(
          [
            ["Base", data.a, data.a_categories],
            ["Candidate", data.b, data.b_categories],
          ] as const
        ).map(([role, side, slices]) => (
          <div key={role} class="compare-bar">
            <span class="compare-bar-label">
              <strong>{role}</strong> {side.ref.run}
            </span>
            <StackedBar slices={slices} scaleNs={scale} context="resource_usage" />
            <span class="num compare-bar-total" title={exactNs(sumNs(slices))}>
              {formatNs(sumNs(slices))}
            </span>
          </div>
        ))}
      </div>
      <table class="readings">
        <thead>
          <tr>
            <th scope="col">Category</th>
            <th scope="col" class="right">
              Base
            </th>
            <th scope="col" class="right">
              Candidate
            </th>
            <th scope="col" class="right">
              Difference
            </th>
          </tr>
        </thead>
        <tbody>
          {keys.map(({ key, label }, index) => {
            const before = a.get(key)?.value_ns ?? null;
            const after = b.get(key)?.value_ns ?? null;
            const difference = before === null || after === null ? null : after - before;
            return (
              <tr key={key}>
                <td>
                  <span class="swatch" style={{ background: colourOf(key, index, "resource_usage") }} />{" "}
                  <Defined text={SLICES["resource_usage"]?.[key] ?? label}>{label}</Defined>
                </td>
                <td class="right">
                  <Value value={before} unit="ns" missing="not recorded" />
                </td>
                <td class="right">
                  <Value value={after} unit="ns" missing="not recorded" />
                </td>
                <td class="right num" title={exactNs(difference)}>
                  {difference === null ? <span class="missing">–</span> : formatNsDifference(difference)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Drawing>
  );
}
