/** The start page of a logdir without recordings: how to make one. */
import { CodeBlock } from "../components/CodeBlock";
import { ImportOffer } from "../features/ImportOffer";

const CONTEXT = `import tb_dlprof_plugin

with tb_dlprof_plugin.profile("runs/fp32", model=model, dataloader=loader) as prof:
    for batch in loader:
        train_step(batch)
        prof.step()`;

const HANDLER = `with torch.profiler.profile(
    on_trace_ready=tb_dlprof_plugin.trace_handler("runs/fp32"),
) as prof:
    ...`;

export function EmptyState({ logdir, importCommand }: { logdir: string; importCommand: string }) {
  return (
    <main id="page" tabIndex={-1} class="start" data-testid="empty-state">
      <h1>No recordings yet</h1>
      <p>
        {logdir ? (
          <>
            <code>{logdir}</code> holds no run that tb_dlprof_plugin recorded.
          </>
        ) : (
          "The log directory holds no run that tb_dlprof_plugin recorded."
        )}{" "}
        Record one, then press Refresh.
      </p>
      <h2>A script as it is</h2>
      <CodeBlock code="tb-dlprof run --logdir runs train.py" label="Shell command that records a script" />
      <h2>Traces that you already have</h2>
      <CodeBlock code="tb-dlprof import traces/ --logdir runs" label="Shell command that imports traces" />
      <ImportOffer command={importCommand} />
      <h2>In a training loop</h2>
      <CodeBlock code={CONTEXT} label="Python code that records a run" />
      <h2>With a torch.profiler you already have</h2>
      <CodeBlock code={HANDLER} label="Python code for an existing profiler" />
      <h2>Without a training of your own</h2>
      <p>In a checkout of tb_dlprof_plugin, this shows recorded runs of six models:</p>
      <CodeBlock code="make demo" label="Shell command of the demo" />
    </main>
  );
}
