/**
 * A parameter of the page: a signal and its spelling in the address. Components read `param.value`, which subscribes them to
 * this one alone, and assign it; `address.ts` keeps the address in step. Each page declares its own next to itself.
 */
import { batch, signal, type Signal } from "@preact/signals";

export type Pairs = [key: string, value: string][];

/** How a value is spelled as pairs of the address; what is missing or makes no sense is read as the default. */
export interface Spelling<T> {
  read: (pairs: ReadonlyMap<string, string>) => T;
  /** Nothing for the default. */
  write: (value: T) => Pairs;
}

export interface ParamOptions {
  /** It is about what one run holds, and is reset when another run is picked. */
  ofRun?: boolean;
  /** It names one thing: a link to another page that names one drops the filters, which may not let it through. */
  namesOne?: boolean;
  /** It says which rows are shown. */
  filters?: boolean;
}

/** A parameter and the value that it is to take: part of a change that a link makes. */
export interface Assignment {
  readonly param: AnyParam;
  readonly value: unknown;
}

/** What holds for a parameter of any type. */
export interface AnyParam {
  readonly options: ParamOptions;
  /** Takes the value that the pairs spell; one that is spelled like the present value changes nothing. */
  load(pairs: ReadonlyMap<string, string>): void;
  pairs(): Pairs;
  reset(): void;
  assign(value: unknown): void;
}

export class Param<T> implements AnyParam {
  private readonly held: Signal<T>;

  constructor(
    private readonly spelling: Spelling<T>,
    readonly options: ParamOptions = {},
  ) {
    this.held = signal(this.initial());
  }

  get value(): T {
    return this.held.value;
  }

  set value(next: T) {
    this.held.value = next;
  }

  /** This value, as part of a change. */
  to(value: T): Assignment {
    return { param: this, value };
  }

  /** The default, as part of a change. */
  toDefault(): Assignment {
    return this.to(this.initial());
  }

  load(pairs: ReadonlyMap<string, string>): void {
    const next = this.spelling.read(pairs);
    if (JSON.stringify(this.spelling.write(next)) !== JSON.stringify(this.pairs())) this.value = next;
  }

  pairs(): Pairs {
    return this.spelling.write(this.value);
  }

  reset(): void {
    this.value = this.initial();
  }

  assign(value: unknown): void {
    this.value = value as T;
  }

  private initial(): T {
    return this.spelling.read(new Map());
  }
}

/** The value of a parameter that other hooks depend on: as what a hook returns, the linter takes it for what can change. */
export const useParam = <T>(param: Param<T>): T => param.value;

/** Several values at once: what depends on two of them is drawn once. */
export function assign(...changes: readonly Assignment[]): void {
  batch(() => {
    for (const { param, value } of changes) param.assign(value);
  });
}

/** A text; null by default. `test` says which texts make sense. */
export function textParam(key: string, options: ParamOptions = {}, test?: RegExp): Param<string | null> {
  return new Param<string | null>(
    {
      read: (pairs) => {
        const text = pairs.get(key) || null;
        return text !== null && test && !test.test(text) ? null : text;
      },
      write: (value) => pair(key, value),
    },
    options,
  );
}

/** A whole number from 0; null by default. */
export function indexParam(key: string, options: ParamOptions = {}): Param<number | null> {
  return new Param<number | null>(
    { read: (pairs) => readIndex(pairs, key), write: (value) => pair(key, value) },
    options,
  );
}

/** One of a few words, the first of them by default. */
export function choiceParam<T extends string>(key: string, choices: readonly [T, ...T[]]): Param<T> {
  return new Param<T>({
    read: (pairs) => choices.find((choice) => choice === pairs.get(key)) ?? choices[0],
    write: (value) => (value === choices[0] ? [] : pair(key, value)),
  });
}

/** Names with commas between; none by default. */
export function namesParam(key: string): Param<readonly string[]> {
  return new Param<readonly string[]>({
    read: (pairs) => readNames(pairs.get(key)),
    write: (value) => pair(key, value.join(",") || null),
  });
}

/** No pair for null. */
export const pair = (key: string, value: string | number | null): Pairs =>
  value === null ? [] : [[key, String(value)]];

export function readIndex(pairs: ReadonlyMap<string, string>, key: string): number | null {
  const value = pairs.get(key);
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : null;
}

/** Far more than there are rules: an address that someone made up cannot make the page slow. */
const MOST_NAMES = 200;

export const readNames = (text: string | undefined): string[] =>
  [...new Set((text ?? "").split(",").filter((name) => /^[\w-]+$/.test(name)))].slice(0, MOST_NAMES);
