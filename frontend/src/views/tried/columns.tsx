/** The tables of the page Tried. */
import type { NotTriedRow, TriedRow } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";

export const TRIED: Column<TriedRow>[] = [
  {
    id: "remedy",
    header: "Remedy",
    definition: DEFINITIONS.triedRemedy,
    value: (row) => row.title || row.remedy,
    width: "260px",
  },
  {
    id: "before",
    header: "Before",
    definition: DEFINITIONS.triedBefore,
    value: (row) => row.before_ns,
    unit: "ns",
    width: "90px",
  },
  {
    id: "after",
    header: "After",
    definition: DEFINITIONS.triedAfter,
    value: (row) => row.after_ns,
    unit: "ns",
    width: "90px",
  },
  {
    id: "gain",
    header: "Gain",
    definition: DEFINITIONS.triedGain,
    value: (row) => row.gain_percent,
    unit: "percent",
    width: "80px",
  },
  {
    id: "low",
    header: "At least",
    definition: DEFINITIONS.triedInterval,
    value: (row) => row.low_percent,
    unit: "percent",
    width: "84px",
  },
  {
    id: "high",
    header: "At most",
    definition: DEFINITIONS.triedInterval,
    value: (row) => row.high_percent,
    unit: "percent",
    width: "84px",
  },
  {
    id: "forecast",
    header: "Forecast",
    definition: DEFINITIONS.triedForecast,
    value: (row) => row.forecast_percent,
    unit: "percent",
    width: "88px",
  },
  {
    id: "memory",
    header: "Memory",
    definition: DEFINITIONS.triedMemory,
    value: (row) => row.memory_bytes,
    unit: "bytes",
    width: "90px",
  },
  {
    id: "joules",
    header: "Energy",
    definition: DEFINITIONS.triedEnergy,
    value: (row) => row.joules,
    unit: "joules",
    width: "84px",
  },
  {
    id: "start",
    header: "Start",
    definition: DEFINITIONS.triedStart,
    value: (row) => (row.start_s === null ? null : row.start_s * 1e9),
    unit: "ns",
    width: "80px",
  },
  {
    id: "verdict",
    header: "Training",
    definition: DEFINITIONS.triedVerdict,
    value: (row) => row.verdict,
    cell: (row) => <span title={[row.verdict_text, row.changes].filter(Boolean).join(" ")}>{row.verdict}</span>,
    width: "170px",
  },
];

export const NOT_TRIED: Column<NotTriedRow>[] = [
  {
    id: "remedy",
    header: "Remedy",
    definition: DEFINITIONS.triedRemedy,
    value: (row) => row.title || row.remedy,
    width: "260px",
  },
  { id: "why", header: "Why", definition: DEFINITIONS.triedWhyNot, value: (row) => row.why, width: "420px" },
];
