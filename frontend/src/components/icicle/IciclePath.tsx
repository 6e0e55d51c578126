/** What is around the node that an icicle draws over the full width, each a way back to it. */
interface IciclePathProps {
  around: readonly { key: string; label: string }[];
  shown: string;
  /** For screen readers: "Modules around this one". */
  name: string;
  testId: string;
  onSelect: (key: string) => void;
}

export function IciclePath({ around, shown, name, testId, onSelect }: IciclePathProps) {
  return (
    <nav class="icicle-path" aria-label={name} data-testid={testId}>
      {around.map(({ key, label }) => (
        <span key={key}>
          <button type="button" class="link" onClick={() => onSelect(key)}>
            {label}
          </button>{" "}
          ›
        </span>
      ))}
      <strong>{shown}</strong>
    </nav>
  );
}
