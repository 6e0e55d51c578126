/** What the pages are filtered to: an op, a kernel or a module; and its spelling in the address. Pure. */
export interface Subject {
  kind: "op" | "kernel" | "module";
  /** Of an op or a kernel its id; of a module its key as in `views/modules/tree.ts`. */
  id: string;
}

export const subjectText = (subject: Subject | null): string | null =>
  subject ? `${subject.kind}:${subject.id}` : null;

export function parseSubject(text: string | null): Subject | null {
  const found = /^(op|kernel|module):([^]+)$/.exec(text ?? "");
  return found ? { kind: found[1] as Subject["kind"], id: found[2]! } : null;
}
