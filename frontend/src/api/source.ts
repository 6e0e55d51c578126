/** What routes there are and what each answers; where answers come from; what can go wrong. */
import type { Routes } from "./types";

export type { Routes };
export type Route = keyof Routes;

/** The routes that answer with a part of a file. */
export type FileRoute = "trace" | "page_file";
export type Query = Record<string, string | number | null>;

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

/** The relative address of a route; parts of the query that are null are left to the server's defaults. */
export function routeAddress(route: Route | FileRoute, query: Query): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== null);
  const text = pairs.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`).join("&");
  return `./${route}${text ? `?${text}` : ""}`;
}

/** What is not in an exported file, where a server would compute it. */
export class NotInFile extends ApiError {
  constructor(message: string) {
    super(message, 404);
    this.name = "NotInFile";
  }
}

/** What an exported file says of itself. */
export interface FileFacts {
  title: string;
  /** When it was made, ISO 8601. */
  made: string;
  /** Of tb_dlprof_plugin. */
  version: string;
}

/** Where answers come from: a server, or a file that holds them. */
export interface Source {
  answer(route: Route, query: Query, signal?: AbortSignal): Promise<unknown>;
  /** Null where a server answers, which can compute whatever is asked. */
  readonly file: FileFacts | null;
}
