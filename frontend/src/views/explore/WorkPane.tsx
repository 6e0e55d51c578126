/** The selected op, op type, kernel or module next to the table: what its row holds, then all that the server says of it. */
import type { ComponentChildren } from "preact";
import { profileQuery } from "../../api/queries";
import { useResource } from "../../api/useResource";
import { ErrorMessage } from "../../components/Message";
import { Pane } from "../../components/Pane";
import type { Page } from "../../state/pages";
import { profileParam, rangeParam } from "../../state/sharedParams";
import { kindText, type Subject } from "../../state/subject";
import { RelatedLinks } from "../filter/RelatedLinks";
import { WorkSections } from "./WorkSections";

interface WorkPaneProps {
  subject: Subject;
  title: string;
  hasGpu: boolean;
  /** A page that what the row holds leads to. */
  without?: Page;
  onClose: () => void;
  /** What its row holds. */
  children: ComponentChildren;
}

export function WorkPane({ subject, title, hasGpu, without, onClose, children }: WorkPaneProps) {
  const { kind, id } = subject;
  const resource = useResource(
    "work_detail",
    { ...profileQuery(profileParam.value, rangeParam.value), kind, id },
    `${profileParam.value.run} ${kind} ${id}`,
  );
  return (
    <Pane of={kindText(subject)} testId={`${kind.replace("_", "-")}-detail`} busy={resource.stale} onClose={onClose}>
      <h2 class="pane-title">{title}</h2>
      <RelatedLinks subject={subject} hasGpu={hasGpu} {...(without && { without })} />
      {children}
      {resource.error && (
        <ErrorMessage text={resource.error.message} onRetry={resource.retry} old={resource.data !== null} />
      )}
      {resource.data && <WorkSections data={resource.data} />}
      {!resource.data && resource.slow && <div class="skeleton skeleton-table" role="status" aria-label="Loading" />}
    </Pane>
  );
}
