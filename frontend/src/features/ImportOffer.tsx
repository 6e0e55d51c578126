/** The command that makes runs of what TensorFlow's and JAX' profilers wrote into the log directory. */
import { CodeBlock } from "../components/CodeBlock";

export function ImportOffer({ command }: { command: string }) {
  if (!command) return null;
  return (
    <section data-testid="import-offer">
      <p>
        The log directory holds profiles of TensorFlow or JAX (<code>plugins/profile/…/*.xplane.pb</code>) that are not
        runs yet. This command imports them; then press Refresh.
      </p>
      <CodeBlock code={command} label="Shell command that imports the profiles" />
    </section>
  );
}
