/** A name that, where room is short, is cut in its middle: modules and kernels differ at their ends. The cell around it has it whole on hover. */

/** Characters at the end that are always shown. */
const TAIL = 15;
/** Shorter names are cut at their end, if at all. */
const LONG = 24;

export const isCut = (name: string): boolean => name.length >= LONG;

export function CutName({ name }: { name: string }) {
  if (!isCut(name)) return <bdi class="cut-short">{name}</bdi>;
  return (
    <span class="cut">
      <bdi class="cut-head">{name.slice(0, -TAIL)}</bdi>
      <bdi class="cut-tail">{name.slice(-TAIL)}</bdi>
    </span>
  );
}
