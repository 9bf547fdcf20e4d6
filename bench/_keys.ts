/** Real keys: addresses and prefixes from the table of autonomous systems. */
import { type AsnPrefixes, asnRanges, toPrefixes } from "./_data.ts";
import { seeded, shuffle } from "./_random.ts";

/** Distinct IPv4 addresses in random order, and the system that announces each. */
export interface Keys {
  address: Uint32Array;
  asn: Uint32Array;
}

/** Reads the table, which the task has fetched. */
export async function realPrefixes(): Promise<AsnPrefixes> {
  return toPrefixes(await asnRanges());
}

/**
 * The first address of every prefix and, for more, their last ones, in shared
 * memory.
 */
export function realKeys({ address, length, asn }: AsnPrefixes): Keys {
  const last = (i: number) => address[i] + 2 ** (32 - length[i]) - 1;
  const rows: number[] = [];
  for (let i = 0; i < address.length; i++) rows.push(i);
  for (let i = 0; i < address.length; i++) {
    if (last(i) !== address[i]) rows.push(i + address.length);
  }
  shuffle(rows, seeded(1));
  const keys: Keys = {
    address: sharedArray(rows.length),
    asn: sharedArray(rows.length),
  };
  for (const [n, row] of rows.entries()) {
    const i = row % address.length;
    keys.address[n] = row < address.length ? address[i] : last(i);
    keys.asn[n] = asn[i];
  }
  return keys;
}

function sharedArray(length: number): Uint32Array {
  return new Uint32Array(new SharedArrayBuffer(4 * length));
}

/** An address as people write it: a new string at every call. */
export function dotted(address: number): string {
  return `${address >>> 24}.${address >>> 16 & 255}.${address >>> 8 & 255}.${
    address & 255
  }`;
}
