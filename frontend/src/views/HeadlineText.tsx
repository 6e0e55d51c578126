/** A page's first sentence, its names links to what they name. */
import type { TextPart } from "../api/types";
import { goTo } from "../state/navigate";
import { filterParam, kernelParam, moduleParam, opParam, opTypeParam } from "../state/sharedParams";

function open({ kind, id }: TextPart): void {
  if (kind === "op") goTo("ops", opParam.to(id), filterParam.to(null));
  else if (kind === "op_type") goTo("op_types", opTypeParam.to(id), filterParam.to(null));
  else if (kind === "module") goTo("modules", moduleParam.to(id), filterParam.to(null));
  else if (kind === "kernel") goTo("kernels", kernelParam.to(id), filterParam.to(null));
}

export function HeadlineText({ parts }: { parts: TextPart[] }) {
  return (
    <>
      {parts.map((part, place) =>
        part.kind === "" ? (
          part.text
        ) : (
          <button type="button" key={place} class="link" onClick={() => open(part)}>
            {part.text}
          </button>
        ),
      )}
    </>
  );
}
