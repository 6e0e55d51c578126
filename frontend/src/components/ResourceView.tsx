/** A resource in; its page, its error or its skeleton out. */
import type { ComponentChildren } from "preact";
import { NotInFile } from "../api/client";
import type { Resource } from "../api/useResource";
import { ErrorMessage } from "./Message";
import { NotInFileMessage } from "./NotInFileMessage";
import { PageSkeleton } from "./Skeleton";

interface ResourceViewProps<T> {
  resource: Resource<T>;
  /** Below an error: what may mend it. */
  remedy?: ComponentChildren;
  children: (data: T) => ComponentChildren;
}

export function ResourceView<T>({ resource, remedy, children }: ResourceViewProps<T>) {
  if (resource.error instanceof NotInFile) return <NotInFileMessage reason={resource.error} />;
  const error = resource.error && <ErrorMessage text={resource.error.message} onRetry={resource.retry} old={resource.data !== null} />;
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
        <div class={resource.stale && resource.slow ? "stale" : ""} aria-busy={resource.stale && resource.error === null}>
          {children(resource.data)}
        </div>
      </>
    );
  }
  return resource.slow ? <PageSkeleton /> : null;
}
