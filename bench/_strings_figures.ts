/** The figures of string keys, to be run in a fresh thread. */
import { json, Rcu, RcuMap, string } from "../mod.ts";
import { DRAWS, ofDraws, warmed } from "./_batches.ts";
import {
  objectReader,
  rcuObjectReader,
  type Route,
  route,
} from "./_map_loops.ts";
import { effort, interleave, type Series } from "./_measure.ts";
import { seeded, shuffle, zipf } from "./_random.ts";

/** Names of the contenders. */
export const REPEATED = { map: "Map.get", rcuMap: "RcuMap.get" } as const;
export const FRESH = {
  map: "decode, Map.get",
  rcuMap: "decode, RcuMap.get",
  utf8: "RcuMap.getUtf8",
} as const;

/** What came out for some keys. */
export interface StringFigures {
  /** Strings that are drawn again and again. */
  repeated: Series;
  /** Keys as bytes, as they come from the network: each lookup gets the string anew. */
  fresh: Series;
}

/** Looks keys up as bytes, and returns a sum. */
type BytesReader = (keys: Uint8Array[], from: number, to: number) => number;

// Each learns of one kind of map, as in `_map_loops.ts`.

function decodingReader(map: Map<string, Route>): BytesReader {
  const decoder = new TextDecoder();
  return (keys, from, to) => {
    let sum = 0;
    for (let i = from; i < to; i++) {
      sum = (sum + map.get(decoder.decode(keys[i]))!.asn) | 0;
    }
    return sum;
  };
}

function decodingRcuReader(map: RcuMap<string, Route>): BytesReader {
  const decoder = new TextDecoder();
  return (keys, from, to) => {
    let sum = 0;
    for (let i = from; i < to; i++) {
      sum = (sum + map.get(decoder.decode(keys[i]))!.asn) | 0;
    }
    return sum;
  };
}

function utf8Reader(map: RcuMap<string, Route>): BytesReader {
  return (keys, from, to) => {
    let sum = 0;
    for (let i = from; i < to; i++) {
      sum = (sum + map.getUtf8(keys[i])!.asn) | 0;
    }
    return sum;
  };
}

/** Lookups of keys drawn by Zipf's law, in a private map and in a shared one. */
export async function lookUpStrings(
  { keys, quick }: { keys: string[]; quick: boolean },
): Promise<StringFigures> {
  using rcu = Rcu.create({ name: "reader" });
  const random = seeded(5);
  const names = shuffle([...keys], random);
  const map = new Map<string, Route>();
  const shared = RcuMap.open(rcu, "strings", {
    key: string,
    value: json<Route>(),
  });
  for (const [i, name] of names.entries()) map.set(name, route(name, i));
  shared.replaceAll(map);
  const draws = zipf(DRAWS, names.length, random);
  const drawn = Array.from(draws, (i) => names[i]);
  const encoder = new TextEncoder();
  const bytes = drawn.map((name) => encoder.encode(name));
  const readMap = objectReader(map);
  const readShared = rcuObjectReader(shared);
  const length = effort({ rounds: 161, warmUp: 120, budget: 4000 }, quick);
  const repeated = await interleave([
    warmed(REPEATED.map, (round) => readMap(drawn, ...ofDraws(round))),
    warmed(REPEATED.rcuMap, (round) => readShared(drawn, ...ofDraws(round))),
  ], length);
  const decodes = decodingReader(map);
  const decodesShared = decodingRcuReader(shared);
  const takesBytes = utf8Reader(shared);
  const fresh = await interleave([
    warmed(FRESH.map, (round) => decodes(bytes, ...ofDraws(round))),
    warmed(FRESH.rcuMap, (round) => decodesShared(bytes, ...ofDraws(round))),
    warmed(FRESH.utf8, (round) => takesBytes(bytes, ...ofDraws(round))),
  ], effort({ rounds: 81, warmUp: 40, budget: 4000 }, quick));
  return { repeated, fresh };
}
