/** A resource in; its page, its error or its skeleton out. */
import type { ComponentChildren } from "preact";
import { NotInFile } from "../api/source";
import type { Resource } from "../api/useResource";
import { ErrorMessage } from "../components/Message";
import { NotInFileMessage } from "./NotInFileMessage";
import { PageSkeleton } from "../components/Skeleton";

interface ResourceViewProps<T> {
  resource: Resource<T>;
  /** Below an error: what may fix it. */
  remedy?: ComponentChildren;
  /** What leads from a part that an exported file does not hold to the whole; the profile's own by default. */
  onWhole?: (() => void) | null;
  children: (data: T) => ComponentChildren;
}

export function ResourceView<T>({ resource, remedy, onWhole, children }: ResourceViewProps<T>) {
  if (resource.error instanceof NotInFile) return <NotInFileMessage reason={resource.error} onWhole={onWhole} />;
  const error = resource.error && (
    <ErrorMessage text={resource.error.message} onRetry={resource.retry} old={resource.data !== null} />
  );
  if (resource.error && resource.data === null) {
    return (
      <>
        {error}
        {remedy}
      </>
    );
  }
  if (resource.data !== null) {
    return (
      <>
        {error}
        <div
          class={resource.stale && resource.slow ? "stale" : ""}
          aria-busy={resource.stale && resource.error === null}
        >
          {children(resource.data)}
        </div>
      </>
    );
  }
  return resource.slow ? <PageSkeleton /> : null;
}
