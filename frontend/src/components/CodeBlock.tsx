/** Code with a button that copies it. */
import { CopyButton } from "./CopyButton";

export function CodeBlock({ code, label }: { code: string; label: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label}>
        <code>{code}</code>
      </pre>
      <CopyButton text={() => code} />
    </div>
  );
}
