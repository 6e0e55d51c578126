/** The tables of the page Energy. */
import type { EnergyChoice, EnergyModule, EnergyOp, EnergyPart } from "../../api/types";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";

const SHARE = {
  id: "share",
  header: "Share",
  definition: DEFINITIONS.energyShare,
  unit: "percent",
  width: "80px",
} as const;

export const PARTS: Column<EnergyPart>[] = [
  { id: "kind", header: "Work", definition: DEFINITIONS.energyKind, value: (row) => row.kind, width: "220px" },
  {
    id: "joules",
    header: "Energy",
    definition: DEFINITIONS.energyPart,
    value: (row) => row.joules,
    unit: "joules",
    width: "90px",
  },
  { ...SHARE, value: (row) => row.percent },
];

export const MODULES: Column<EnergyModule>[] = [
  {
    id: "module",
    header: "Module",
    definition: DEFINITIONS.modulePath,
    value: (row) => row.path || "whole model",
    width: "220px",
  },
  {
    id: "joules",
    header: "Energy above rest",
    definition: DEFINITIONS.energyModule,
    value: (row) => row.joules,
    unit: "joules",
    width: "150px",
  },
  { ...SHARE, value: (row) => row.percent },
];

export const OPS: Column<EnergyOp>[] = [
  { id: "op", header: "Op", definition: DEFINITIONS.opName, value: (row) => row.name, width: "220px" },
  {
    id: "direction",
    header: "Direction",
    definition: "Forward or backward; empty for what is neither.",
    value: (row) => row.direction,
    width: "100px",
  },
  {
    id: "joules",
    header: "Energy above rest",
    definition: DEFINITIONS.energyPart,
    value: (row) => row.joules,
    unit: "joules",
    width: "150px",
  },
  { ...SHARE, value: (row) => row.percent },
  {
    id: "watts",
    header: "Power",
    definition: DEFINITIONS.energyOpWatts,
    value: (row) => row.watts,
    unit: "watts",
    width: "90px",
  },
];

export const CHOICES: Column<EnergyChoice>[] = [
  {
    id: "precision",
    header: "Precision",
    definition: DEFINITIONS.energyPrecision,
    value: (row) => row.precision,
    width: "150px",
  },
  {
    id: "batch",
    header: "Batch",
    definition: DEFINITIONS.planBatch,
    value: (row) => row.batch_size,
    unit: "count",
    width: "80px",
  },
  {
    id: "step",
    header: "Step",
    definition: DEFINITIONS.planStep,
    value: (row) => (row.step_ms === null ? null : row.step_ms * 1e6),
    unit: "ns",
    width: "90px",
  },
  {
    id: "joules",
    header: "Energy",
    definition: DEFINITIONS.energyChoice,
    value: (row) => row.joules_per_step,
    unit: "joules",
    width: "90px",
  },
  {
    id: "low",
    header: "At least",
    definition: DEFINITIONS.energyInterval,
    value: (row) => row.low_joules,
    unit: "joules",
    width: "90px",
  },
  {
    id: "high",
    header: "At most",
    definition: DEFINITIONS.energyInterval,
    value: (row) => row.high_joules,
    unit: "joules",
    width: "90px",
  },
  {
    id: "sample",
    header: "Energy/sample",
    definition: DEFINITIONS.joulesPerSample,
    value: (row) => row.joules_per_sample,
    unit: "joules",
    width: "116px",
  },
  {
    id: "saved",
    header: "Saved",
    definition: DEFINITIONS.energySaved,
    value: (row) => row.saved_percent,
    unit: "percent",
    width: "80px",
  },
];
