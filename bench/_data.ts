/**
 * Real routes for the benchmarks: the IPv4 ranges of every autonomous system,
 * from the npm package `@ip-location-db/asn` (CC BY 4.0, see the README).
 */

const PACKAGE = "npm:@ip-location-db/asn@2.3.2026061719";

/** Address ranges, both ends included, and the system that announces each. */
export interface AsnRanges {
  start: Uint32Array;
  end: Uint32Array;
  asn: Uint32Array;
}

/** Prefixes: the first address, the length of 0 to 32, and the system. */
export interface AsnPrefixes {
  address: Uint32Array;
  length: Uint8Array;
  asn: Uint32Array;
}

/** What {@linkcode asnRanges} goes through. */
export type Stage = "fetch" | "read" | "parse";

/** Imports the table, fetched and cached by Deno where it isn't yet. */
export async function asnRanges(
  onStage: (stage: Stage) => void = () => {},
): Promise<AsnRanges> {
  onStage("fetch");
  // Specifiers in variables: a literal one is fetched before the program runs,
  // by everyone who imports or checks this file. A data file can be imported
  // only once its package is there, which importing JSON brings about.
  const manifest = `${PACKAGE}/package.json`;
  await import(manifest, { with: { type: "json" } });
  onStage("read");
  const table = `${PACKAGE}/asn-ipv4-num.csv`;
  const { default: csv } = await import(table, { with: { type: "text" } });
  onStage("parse");
  return parseRanges(csv);
}

const COMMA = 44;
const ZERO = 48;

/** Parses lines of `first,last,system,name`, addresses as numbers. */
export function parseRanges(csv: string): AsnRanges {
  let rows = 0;
  for (let at = 0; at < csv.length; rows++) at = lineAfter(csv, at);
  const columns = [0, 1, 2].map(() => new Uint32Array(rows));
  for (let at = 0, row = 0; row < rows; row++) {
    for (const column of columns) {
      let value = 0;
      for (let code; (code = csv.charCodeAt(at++)) !== COMMA;) {
        const digit = code - ZERO;
        if (!(digit >= 0 && digit <= 9)) {
          throw new SyntaxError(
            `Cannot parse line ${row + 1} as its first three fields must be ` +
              `numbers: received ${JSON.stringify(csv.slice(at - 1, at + 9))}`,
          );
        }
        value = value * 10 + digit;
      }
      column[row] = value;
    }
    at = lineAfter(csv, at);
  }
  const [start, end, asn] = columns as [Uint32Array, Uint32Array, Uint32Array];
  return { start, end, asn };
}

function lineAfter(csv: string, at: number): number {
  const newline = csv.indexOf("\n", at);
  return newline < 0 ? csv.length : newline + 1;
}

/** Splits ranges into the fewest prefixes that cover just the same addresses. */
export function toPrefixes({ start, end, asn }: AsnRanges): AsnPrefixes {
  let count = 0;
  for (let i = 0; i < start.length; i++) {
    for (let at = start[i]; at <= end[i]; count++) at += block(at, end[i]);
  }
  const prefixes = {
    address: new Uint32Array(count),
    length: new Uint8Array(count),
    asn: new Uint32Array(count),
  };
  for (let i = 0, n = 0; i < start.length; i++) {
    for (let at = start[i], size; at <= end[i]; at += size, n++) {
      size = block(at, end[i]);
      prefixes.address[n] = at;
      prefixes.length[n] = 32 - Math.log2(size);
      prefixes.asn[n] = asn[i];
    }
  }
  return prefixes;
}

/** Size of the largest aligned block that starts at `at` and ends by `end`. */
function block(at: number, end: number): number {
  let size = at === 0 ? 2 ** 32 : (at & -at) >>> 0;
  while (at + size - 1 > end) size /= 2;
  return size;
}
