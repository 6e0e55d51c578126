/** The sorting and the filters of a table, kept in the address: `ops.sort=-gpu_ns&ops.filter.name=conv`. */
import { batch } from "@preact/signals";
import type { TableOptions, TableState } from "../components/table/model";
import { columnsParam } from "./sharedParams";
import { pair, Param, type AnyParam, type Assignment, type Pairs } from "./param";

type Filter = TableState["filters"][number];

export class TableParam implements TableOptions {
  /** One choice for all tables. */
  readonly task = columnsParam;
  private readonly sorting: Param<TableState["sorting"]>;
  private readonly filters: Param<TableState["filters"]>;
  /** What a page declares of it. */
  readonly params: readonly AnyParam[];

  /** `name` tells the tables of the address apart; `current` reads a column and a filter as earlier versions spelled them. */
  constructor(name: string, current: (filter: Filter) => Filter = (filter) => filter) {
    this.sorting = new Param<TableState["sorting"]>({
      read: (pairs) => {
        const found = /^(-?)(.+)$/.exec(pairs.get(`${name}.sort`) ?? "");
        return found ? { id: current({ id: found[2]!, query: "" }).id, desc: found[1] === "-" } : null;
      },
      write: (sorting) => pair(`${name}.sort`, sorting && `${sorting.desc ? "-" : ""}${sorting.id}`),
    });
    const prefix = `${name}.filter.`;
    this.filters = new Param<TableState["filters"]>(
      {
        read: (pairs) =>
          [...pairs].flatMap(([key, query]) =>
            key.startsWith(prefix) && query !== "" ? [current({ id: key.slice(prefix.length), query })] : [],
          ),
        write: (filters) => filters.map(({ id, query }): Pairs[number] => [prefix + id, query]),
      },
      { filters: true },
    );
    this.params = [this.sorting, this.filters];
  }

  get value(): TableState {
    return { sorting: this.sorting.value, filters: this.filters.value };
  }

  set value({ sorting, filters }: TableState) {
    batch(() => {
      this.sorting.value = sorting;
      this.filters.value = filters;
    });
  }

  /** The table as it is at first, as part of a change. */
  toDefault(): Assignment[] {
    return [this.sorting.toDefault(), this.filters.toDefault()];
  }
}
