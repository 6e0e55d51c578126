/** The parameters of a page that asks for a request: one for each of its options, which Python declares. */
import { type AnyParam, indexParam, type Param, textParam } from "./param";

export interface RequestOption {
  /** Of the route's parameter. */
  name: string;
  /** In the address. */
  key: string;
  label: string;
  kind: "count" | "number" | "word" | "text";
  /** Values with their words, "" for the default. A word is one of them, a text can be another. */
  choices: readonly (readonly string[])[];
  /** Another option, without which this one is left out. */
  needs: string | null;
  /** What it starts with once that is given. */
  first: number | null;
  /** It is about what one run has. */
  ofRun: boolean;
}

type OptionParam = Param<number | null> | Param<string | null>;

export class RequestParams {
  private readonly byName: ReadonlyMap<string, OptionParam>;

  constructor(readonly options: readonly RequestOption[]) {
    this.byName = new Map(options.map((option) => [option.name, paramOf(option)]));
  }

  get all(): readonly AnyParam[] {
    return [...this.byName.values()];
  }

  count(name: string): Param<number | null> {
    return this.byName.get(name) as Param<number | null>;
  }

  text(name: string): Param<string | null> {
    return this.byName.get(name) as Param<string | null>;
  }

  /** Whether an option applies: the one that it needs is given. */
  applies(option: RequestOption): boolean {
    return option.needs === null || this.byName.get(option.needs)?.value !== null;
  }

  private given(option: RequestOption): string | number | null {
    const value = this.byName.get(option.name)!.value ?? option.first;
    return option.kind === "number" && value !== null ? Number(value) : value;
  }

  /** The parameters of the route; null is left to the server. */
  query(): Record<string, string | number | null> {
    return Object.fromEntries(
      this.options.map((option) => [option.name, this.applies(option) ? this.given(option) : null]),
    );
  }
}

const DECIMAL = /^\d{1,9}(\.\d{1,6})?$/;

function paramOf({ key, kind, choices, ofRun }: RequestOption): OptionParam {
  if (kind === "count") return indexParam(key, { ofRun });
  if (kind === "number") return textParam(key, { ofRun }, DECIMAL);
  const words = kind === "word" ? new RegExp(`^(?:${choices.map(([value]) => value).join("|")})$`) : undefined;
  return textParam(key, { ofRun }, words);
}
