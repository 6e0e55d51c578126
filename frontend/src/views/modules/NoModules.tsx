/** What stands in place of the page where no module was recorded: how to record them. */
import { CodeBlock } from "../../components/CodeBlock";

const HOOK = `with tb_dlprof_plugin.profile("runs/fp32", model=model) as prof:
    for batch in loader:
        train_step(batch)
        prof.step()`;

const STACKS = `torch.profiler.profile(
    with_stack=True,
    on_trace_ready=tb_dlprof_plugin.trace_handler("runs/fp32"),
)`;

export function NoModules({ remedy }: { remedy: string }) {
  if (remedy)
    return (
      <div class="message" data-testid="no-modules">
        <strong>{remedy}</strong>
      </div>
    );
  return (
    <div class="message" data-testid="no-modules">
      <strong>This recording does not say which module an op belongs to.</strong>
      <p>Give the hook the model, and it records the path of each module that runs:</p>
      <CodeBlock code={HOOK} label="Python code that records modules" />
      <p>Without the model, Python stacks name the class of each module, with a larger and slower recording:</p>
      <CodeBlock code={STACKS} label="Python code that records Python stacks" />
    </div>
  );
}
