import { describe, expect, it } from "vitest";
import { type RequestOption, RequestParams } from "./requestParams";

const BASE: RequestOption = {
  name: "shard",
  key: "share",
  label: "",
  kind: "word",
  choices: [
    ["", "one"],
    ["ddp", "ddp"],
  ],
  needs: null,
  first: null,
  ofRun: false,
};

describe("parameters of a request", () => {
  const gpus: RequestOption = {
    ...BASE,
    name: "gpus",
    key: "gpus",
    kind: "count",
    choices: [],
    needs: "shard",
    first: 2,
  };
  const params = new RequestParams([BASE, gpus]);
  const load = (pairs: Record<string, string>) => {
    for (const param of params.all) param.load(new Map(Object.entries(pairs)));
  };

  it("leave out an option without the one that it needs, and start it with its first value", () => {
    load({ gpus: "8" });
    expect(params.query()).toEqual({ shard: null, gpus: null });
    load({ share: "ddp" });
    expect(params.query()).toEqual({ shard: "ddp", gpus: 2 });
    load({ share: "ddp", gpus: "8" });
    expect(params.query()).toEqual({ shard: "ddp", gpus: 8 });
  });

  it("pass over a word of the address that is no choice", () => {
    load({ share: "rows" });
    expect(params.query()).toEqual({ shard: null, gpus: null });
  });

  it("send a decimal as a number, and pass over any other text", () => {
    const price = new RequestParams([{ ...BASE, name: "price", key: "price", kind: "number", choices: [] }]);
    const sent = ["0.25", "1e3", ""].map((text) => {
      price.all[0]!.load(new Map([["price", text]]));
      return price.query().price;
    });
    expect(sent).toEqual([0.25, null, null]);
  });
});
