/** What stands in place of a page: an error, or nothing to show. */
import { Component, type ComponentChildren } from "preact";

interface ErrorMessageProps {
  text: string;
  /** Asks again, where that may help. */
  onRetry?: () => void;
  /** What was there before is still shown below. */
  old?: boolean;
}

export function ErrorMessage({ text, onRetry, old = false }: ErrorMessageProps) {
  return (
    <div class="message message-error" role="alert" data-testid="run-error">
      <strong>{old ? "What is shown below may be old." : "This page cannot be shown."}</strong>
      <p>{text}</p>
      {onRetry && (
        <p>
          <button type="button" class="button button-small" data-testid="retry" onClick={onRetry}>
            Try again
          </button>
        </p>
      )}
    </div>
  );
}

export function EmptyMessage({ children }: { children: ComponentChildren }) {
  return <div class="message">{children}</div>;
}

/** Keeps an exception while drawing one page from taking the pickers with it. `of` names what is drawn: a change retries. */
export class ErrorBoundary extends Component<
  { of: string; children: ComponentChildren },
  { error: unknown; of: string }
> {
  override state = { error: null as unknown, of: this.props.of };

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  static override getDerivedStateFromProps(props: { of: string }, state: { of: string }) {
    return props.of === state.of ? null : { error: null, of: props.of };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    const { error } = this.state;
    return <ErrorMessage text={error instanceof Error ? error.message : String(error)} />;
  }
}
