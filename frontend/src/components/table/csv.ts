/** Columns and rows in, CSV text out (RFC 4180); numbers unrounded, the unit in the header, unknown as an empty cell. */
import { saveBlob } from "../saveBlob";
import type { Column } from "./columns";

/**
 * One cell. A name from a trace may begin like a formula, which a spreadsheet would run: such a text gets a leading quote.
 */
export function csvCell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

const SUFFIX: Record<string, string> = { ns: " (ns)", percent: " (%)", bytes: " (bytes)" };

function headerWithUnit<Row>({ header, unit }: Column<Row>): string {
  return header.includes("%") ? header : header + (SUFFIX[unit ?? ""] ?? "");
}

export function toCsv<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const head = columns.map((column) => csvCell(headerWithUnit(column))).join(",");
  const body = rows.map((row) => columns.map((column) => csvCell(column.value(row))).join(","));
  return `${[head, ...body].join("\r\n")}\r\n`;
}

/** Hands the text to the browser as a file. */
export function downloadCsv(name: string, text: string): void {
  // The byte order mark makes spreadsheets read UTF-8.
  saveBlob(name, new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
}

/** A file name without characters that file systems refuse. */
export function csvName(...parts: string[]): string {
  return `${parts.join("-").replace(/[^\w.-]+/g, "_")}.csv`;
}
