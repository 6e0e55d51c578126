/** Says that the Ops page shows the ops of one module only, with a way back to all. */
import { formatCount } from "../../format/number";
import { useView } from "../../state/store";

interface ModuleChoiceProps {
  /** A key as in `views/modules/tree.ts`. */
  of: string;
  shown: number;
  known: number;
}

export function ModuleChoice({ of, shown, known }: ModuleChoiceProps) {
  const { set } = useView();
  return (
    <p class="chosen-module" data-testid="ops-module">
      <span>
        {formatCount(shown)} of {formatCount(known)} ops: those {of.startsWith(":") ? `in no module of their own, ${of.slice(1)}` : `in ${of}`}
      </span>
      <button type="button" class="link" onClick={() => set({ opModule: null })}>
        Show all ops
      </button>
      <button type="button" class="link" onClick={() => set({ page: "modules", module: of })}>
        Back to the module
      </button>
    </p>
  );
}
