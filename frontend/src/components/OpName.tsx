/** The name of an op. Where room is short its beginning goes first: the end of a module path is what tells ops apart. */
export function OpName({ name }: { name: string }) {
  return (
    <span class="op-name">
      <bdi>{name}</bdi>
    </span>
  );
}
