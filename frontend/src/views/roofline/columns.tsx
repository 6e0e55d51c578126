/** The columns of the table of ops, which are the values of the chart, too. */
import type { RooflineOp } from "../../api/types";
import { OpName } from "../../components/OpName";
import type { Column } from "../../components/table/columns";
import { DEFINITIONS } from "../../format/definitions";

export const COLUMNS: Column<RooflineOp>[] = [
  { id: "name", header: "Op", definition: DEFINITIONS.opName, value: (row) => row.name, cell: (row) => <OpName name={row.name} />, width: "270px" },
  { id: "direction", header: "Direction", definition: DEFINITIONS.direction, value: (row) => row.direction || null, missing: "–", filter: "choice", width: "96px" },
  { id: "gpu", header: "GPU time", definition: DEFINITIONS.matrixTime, value: (row) => row.gpu_ns, unit: "ns", width: "96px" },
  { id: "percent", header: "% of roof", definition: DEFINITIONS.roofPercent, value: (row) => row.percent_of_ceiling, unit: "percent", width: "96px" },
  { id: "rate", header: "Rate", definition: DEFINITIONS.flopRate, value: (row) => row.flops_per_second, unit: "flops_per_second", width: "116px" },
  { id: "roof", header: "Roof", definition: DEFINITIONS.roof, value: (row) => row.ceiling_flops_per_second, unit: "flops_per_second", width: "116px" },
  {
    id: "precision",
    header: "Ran in",
    definition: DEFINITIONS.ranIn,
    value: (row) => (row.precision ? row.precision + (row.tensor_cores === "no" ? ", no TC" : "") : null),
    filter: "choice",
    width: "110px",
  },
  { id: "bound", header: "Bound by", definition: DEFINITIONS.bound, value: (row) => (row.bound === "unknown" ? null : row.bound), filter: "choice", width: "100px" },
  { id: "possible", header: "Could run in", definition: DEFINITIONS.couldRunIn, value: (row) => row.possible_precision || null, filter: "choice", width: "110px" },
  { id: "possiblepercent", header: "% of that roof", definition: DEFINITIONS.possiblePercent, value: (row) => row.percent_of_possible, unit: "percent", width: "116px" },
  { id: "flops", header: "FLOPs", definition: DEFINITIONS.flops, value: (row) => row.flops, unit: "flops", width: "110px" },
  { id: "bytes", header: "Bytes", definition: DEFINITIONS.leastBytes, value: (row) => row.bytes, unit: "bytes", width: "100px" },
  { id: "intensity", header: "FLOPs/byte", definition: DEFINITIONS.intensity, value: (row) => row.flops_per_byte, unit: "count", width: "100px" },
  { id: "calls", header: "Calls", definition: DEFINITIONS.calls, value: (row) => row.calls, unit: "count", width: "76px" },
  { id: "type", header: "Op type", definition: DEFINITIONS.opType, value: (row) => row.op_type, width: "170px" },
  { id: "shapes", header: "Shapes", definition: DEFINITIONS.shapes, value: (row) => row.shapes || null, width: "220px" },
  { id: "dtypes", header: "Types", definition: DEFINITIONS.dtypes, value: (row) => row.dtypes || null, width: "130px" },
];
