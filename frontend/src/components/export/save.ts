/** Names of files, and text handed to the browser as one. */
import { saveBlob } from "../saveBlob";

export function saveCsv(name: string, text: string): void {
  // The byte order mark makes spreadsheets read UTF-8.
  saveBlob(fileName(name, "csv"), new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
}

export function saveJson(name: string, text: string): void {
  saveBlob(fileName(name, "json"), new Blob([text], { type: "application/json" }));
}

/** A file name without characters that file systems refuse. */
export function fileName(name: string, ending: string): string {
  return `dlprof-${name.replace(/[^\w.-]+/g, "_")}.${ending}`;
}
