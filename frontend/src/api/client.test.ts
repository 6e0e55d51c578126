import { afterEach, describe, expect, it, vi } from "vitest";
import { Client } from "./client";
import { ApiError, routeAddress } from "./source";
import { compareQuery, profileQuery } from "./queries";

const BASE = new URL("http://host/proxy/data/plugin/tb_dlprof/");
const answer = (body: string, status = 200) => vi.fn(async () => new Response(body, { status }));

afterEach(() => vi.unstubAllGlobals());

describe("the client", () => {
  it("sends requests to the directory of index.js, whatever the prefix", async () => {
    const fetched = answer('{"runs": []}');
    vi.stubGlobal("fetch", fetched);
    await new Client(BASE).get("runs", {});
    expect(String((fetched.mock.calls as unknown[][])[0]![0])).toBe("http://host/proxy/data/plugin/tb_dlprof/runs");
  });

  it("spells queries and leaves defaults to the server", () => {
    const choice = { run: "a/b &c", session: null, rank: 0, cycle: null, keyNode: null };
    expect(routeAddress("overview", profileQuery(choice, { first: 1, last: 2 }))).toBe(
      "./overview?run=a%2Fb%20%26c&rank=0&first=1&last=2",
    );
    expect(routeAddress("overview", profileQuery({ ...choice, keyNode: "conv1/conv2d" }, null))).toBe(
      "./overview?run=a%2Fb%20%26c&rank=0&key_node=conv1%2Fconv2d",
    );
    expect(
      routeAddress(
        "compare",
        compareQuery({ ...choice, range: null }, { ...choice, run: "b", range: { first: 0, last: 1 } }),
      ),
    ).toBe("./compare?a.run=a%2Fb%20%26c&a.rank=0&b.run=b&b.rank=0&b.first=0&b.last=1");
  });

  it("passes on the server's own sentence", async () => {
    vi.stubGlobal("fetch", answer('{"error": "No run \'x\' here."}', 404));
    await expect(new Client(BASE).get("overview", { run: "x" })).rejects.toEqual(new ApiError("No run 'x' here.", 404));
  });

  it("says something useful about an answer that is no JSON", async () => {
    vi.stubGlobal("fetch", answer("<html>", 502));
    await expect(new Client(BASE).get("runs", {})).rejects.toThrow("The server answered 502");
    vi.stubGlobal("fetch", answer('{"runs": [', 200));
    await expect(new Client(BASE).get("runs", {})).rejects.toThrow("cut off");
  });

  it("reads a list of runs that comes in pieces to its end", async () => {
    const all = ["a", "b", "c", "d", "e"];
    const fetched = vi.fn(async (address: URL) => {
      const offset = Number(address.searchParams.get("offset") ?? 0);
      return new Response(JSON.stringify({ runs: all.slice(offset, offset + 2), offset, total: 5 }));
    });
    vi.stubGlobal("fetch", fetched);
    expect(await new Client(BASE).get("runs", {})).toMatchObject({ runs: all, total: 5 });
    expect(fetched).toHaveBeenCalledTimes(3);
  });

  it("ends a list of runs of which some went away meanwhile", async () => {
    const fetched = vi.fn(
      async (address: URL) => new Response(JSON.stringify({ runs: address.search ? [] : ["a"], offset: 0, total: 5 })),
    );
    vi.stubGlobal("fetch", fetched);
    expect(await new Client(BASE).get("runs", {})).toMatchObject({ runs: ["a"] });
    expect(fetched).toHaveBeenCalledTimes(2);
  });

  it("asks for the rest of the runs only where the first part says that something changed", async () => {
    const server = { runs: ["a", "b", "c"], revision: "1", tag: true, asks: [] as string[] };
    vi.stubGlobal("fetch", async (address: URL, { headers }: { headers: Record<string, string> }) => {
      const offset = Number(address.searchParams.get("offset") ?? 0);
      const known = headers["If-None-Match"];
      server.asks.push(`${offset} ${known ?? "-"}`);
      if (offset === 0 && known === `"${server.revision}"`) return new Response(null, { status: 304 });
      const body = {
        runs: server.runs.slice(offset, offset + 2),
        offset,
        total: 3,
        revision: offset ? "" : server.revision,
      };
      const tag: Record<string, string> = server.tag ? { ETag: `"${server.revision}"` } : {};
      return new Response(JSON.stringify(body), { headers: tag });
    });
    const client = new Client(BASE);
    const first = await client.runs(null);
    expect(first).toMatchObject({ runs: ["a", "b", "c"], revision: "1" });
    expect(await client.runs(first)).toBe(first);
    expect(server.asks).toEqual(["0 -", "2 -", '0 "1"']);
    Object.assign(server, { runs: ["a", "b", "d"], revision: "2", tag: false, asks: [] });
    const second = await client.runs(first);
    expect(second.runs).toEqual(["a", "b", "d"]);
    // Behind a proxy that takes the tag away, the revision still saves the rest.
    expect(await client.runs(second)).toBe(second);
    expect(server.asks).toEqual(['0 "1"', "2 -", "0 -"]);
  });

  it("keeps answers until a refresh", async () => {
    vi.stubGlobal("fetch", answer('{"runs": []}'));
    const client = new Client(BASE);
    await client.get("runs", {});
    expect(client.peek("runs", {})).toEqual({ runs: [] });
    client.clear();
    expect(client.peek("runs", {})).toBeUndefined();
  });
});
