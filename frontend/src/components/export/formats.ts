/**
 * Columns and rows in; the text of a download out: CSV (RFC 4180), tab-separated for a spreadsheet, JSON with the keys of our reports.
 * Numbers keep their digits, in CSV from a million on without decimals, with their unit in the heading or key; unknown is an empty cell, in JSON null.
 */
import { writtenNumber } from "../../format/number";
import type { Unit } from "../../format/unit";
import type { Column } from "../table/columns";

type Value = string | number | null;

/** A name from a trace may begin like a formula, which a spreadsheet would run: such a text gets a leading quote. */
function harmless(text: string): string {
  return /^[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text;
}

/** One cell of a CSV file. */
export function csvCell(value: Value): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const safe = harmless(value);
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/** Tabs and line ends would begin another cell; there is no way to quote them that every spreadsheet takes. */
function tsvCell(value: Value): string {
  return value === null ? "" : typeof value === "number" ? String(value) : harmless(value.replace(/[\t\r\n]+/g, " "));
}

const HEADINGS: Partial<Record<Unit, string>> = {
  ns: " (ns)",
  percent: " (%)",
  bytes: " (bytes)",
  per_second: " (/s)",
  flops_per_second: " (FLOP/s)",
};

function headingOf<Row>({ header, unit, perStep }: Column<Row>): string {
  const of = perStep ? `${header} per step` : header;
  return of.includes("%") ? of : of + (HEADINGS[unit ?? "count"] ?? "");
}

function written<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  cell: (value: Value) => string,
  between: string,
): string {
  const head = columns.map((column) => cell(headingOf(column))).join(between);
  const body = rows.map((row) => columns.map((column) => cell(plain(column.value(row)))).join(between));
  return `${[head, ...body].join("\r\n")}\r\n`;
}

const plain = (value: Value): Value => (typeof value === "number" ? writtenNumber(value) : value);

export function toCsv<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return written(columns, rows, csvCell, ",");
}

/** What spreadsheets take from the clipboard. */
export function toTsv<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return written(columns, rows, tsvCell, "\t");
}

/** A list of objects, one a row. */
export function toJson<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const keys = jsonKeys(columns);
  const objects = rows.map((row) => Object.fromEntries(columns.map((column, at) => [keys[at]!, column.value(row)])));
  return `${JSON.stringify(objects, null, 2)}\n`;
}

const KEY_ENDINGS: Partial<Record<Unit, string>> = {
  ns: "ns",
  percent: "percent",
  bytes: "bytes",
  per_second: "per_second",
  flops_per_second: "flops_per_second",
};

/** A key for each column: its own, else its heading in snake_case with the unit. No two are the same. */
export function jsonKeys<Row>(columns: readonly Column<Row>[]): string[] {
  const taken = new Set<string>();
  return columns.map((column) => {
    const wanted = column.key ? keyPerStep(column.key, column.perStep) : keyOf(column);
    let key = wanted;
    for (let count = 2; taken.has(key); count++) key = `${wanted}_${count}`;
    taken.add(key);
    return key;
  });
}

/** "time_ns" as "time_per_step_ns". */
function keyPerStep(key: string, perStep = false): string {
  return perStep ? key.replace(/(_ns|_bytes)?$/, "_per_step$1") : key;
}

function keyOf<Row>({ header, unit, perStep }: Column<Row>): string {
  const words = (perStep ? `${header} per step` : header)
    .replace(/\(s\)/g, "s")
    .replace(/%/g, unit === "percent" ? " " : " percent ")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "_")
    .replace(/^_+|_+$/g, "");
  const ending = KEY_ENDINGS[unit ?? "count"];
  return (
    [words, ending && words !== ending && !words.endsWith(`_${ending}`) ? ending : ""].filter(Boolean).join("_") ||
    "value"
  );
}
