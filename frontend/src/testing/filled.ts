/** Answers for tests: what a test does not say is empty, so that a new field of an interface changes no test. */
import { type Interfaces, SHAPES, type Shape } from "./shapes";

/** A part of an interface, and parts of those in it. */
export type Given<T> = T extends readonly (infer Item)[]
  ? readonly Given<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]?: Given<T[Name]> }
    : T;

type Values = Readonly<Record<string, unknown>>;

/** An interface of api/types.ts with these values; every other number is 0, text "", list empty, and what may be null is. */
export function filled<Name extends keyof Interfaces>(name: Name, given: Given<Interfaces[Name]>): Interfaces[Name] {
  return fill(name, given as Values) as unknown as Interfaces[Name];
}

/** Several of an interface. */
export function filledAll<Name extends keyof Interfaces>(
  name: Name,
  given: readonly Given<Interfaces[Name]>[],
): Interfaces[Name][] {
  return given.map((one) => filled(name, one));
}

function fill(name: keyof Interfaces, given: Values): Values {
  const { blank, parts }: Shape = SHAPES[name];
  const made: Record<string, unknown> = { ...blank, ...given };
  for (const [field, part] of Object.entries(parts)) {
    made[field] = inside(part, given[field] ?? blank[field]);
  }
  return made;
}

/** A field that holds another interface, or several in a list. */
function inside(part: keyof Interfaces, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one: unknown) => inside(part, one));
  if (value === null) return null;
  return fill(part, (value ?? {}) as Values);
}
