/** Choices of the user in, query parameters of the routes out. */
import type { Query } from "./source";
import type { IterationRange, ProfileChoice, RangeChoice } from "../state/profile";

export function profileQuery(choice: ProfileChoice, range: IterationRange | null): Query {
  return {
    run: choice.run,
    session: choice.session,
    rank: choice.rank,
    cycle: choice.cycle,
    key_node: choice.keyNode,
    first: range?.first ?? null,
    last: range?.last ?? null,
  };
}

export function compareQuery(a: RangeChoice, b: RangeChoice): Query {
  const query: Query = {};
  for (const [prefix, side] of [
    ["a.", a],
    ["b.", b],
  ] as const) {
    for (const [key, value] of Object.entries(profileQuery(side, side.range))) query[prefix + key] = value;
  }
  return query;
}
