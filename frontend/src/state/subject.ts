/** What the pages are filtered to: an op, an op type, a kernel or a module; and its spelling in the address. Pure. */
export interface Subject {
  kind: "op" | "op_type" | "kernel" | "module";
  /** Of an op or a kernel its id; of an op type its name; of a module its key as in `views/modules/tree.ts`. */
  id: string;
}

export const subjectText = (subject: Subject | null): string | null =>
  subject ? `${subject.kind}:${subject.id}` : null;

export function parseSubject(text: string | null): Subject | null {
  const found = /^(op|op_type|kernel|module):([^]+)$/.exec(text ?? "");
  return found ? { kind: found[1] as Subject["kind"], id: found[2]! } : null;
}

/** What a subject is, in words: "op type". */
export const kindText = ({ kind }: Subject): string => kind.replace("_", " ");
