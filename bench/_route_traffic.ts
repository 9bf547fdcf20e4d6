/** The packets of the route-cache benchmark, and what changes beneath them. */
import type { AsnPrefixes } from "./_data.ts";
import { seeded, shuffle, zipf } from "./_random.ts";

/** Flows in all: the processes of 2002. */
export const FLOWS = 32;
/** Packets that a flow sends to one destination before it turns to the next. */
export const BURST = 5;
/** Packets of a batch: every flow goes through one destination. */
export const BATCH = FLOWS * BURST;
/** Batches of a stream, which begins anew at its end. */
const BATCHES = 4096;
/** The least part of a stream is a batch, and all of them have the same length. */
export const STREAM = BATCH * BATCHES;

/** Destinations that the updater brings in beside them, each of them once. */
export const NEWCOMERS = 65_536;

/** All of it is the same for every contender. */
export interface Traffic {
  /** What one worker forwards: the packets of all flows. */
  whole: Int32Array;
  /** What each of two workers forwards: those of half of the flows. */
  halves: Int32Array[];
  newcomers: Int32Array;
  /** The prefixes of the population: those whose routes change. */
  changing: AsnPrefixes;
}

/**
 * Draws destinations: an address in each of some real prefixes, the prefixes
 * drawn evenly; how often each is sent to follows Zipf's law. Real prefixes,
 * synthetic traffic.
 */
export function drawTraffic(
  prefixes: AsnPrefixes,
  size: number,
): Traffic {
  const random = seeded(2002);
  const order = shuffle(
    Uint32Array.from(prefixes.address, (_, i) => i),
    random,
  ).subarray(0, size + NEWCOMERS);
  const destinations = shared(order.length);
  for (const [i, n] of order.entries()) {
    const block = 2 ** (32 - prefixes.length[n]);
    destinations[i] = prefixes.address[n] + Math.floor(random() * block);
  }
  const population = destinations.subarray(0, size);
  const known = order.subarray(0, size);
  return {
    whole: drawStream(population, FLOWS, random),
    halves: [0, 1].map(() => drawStream(population, FLOWS / 2, random)),
    newcomers: destinations.subarray(size),
    changing: {
      address: Uint32Array.from(known, (n) => prefixes.address[n]),
      length: Uint8Array.from(known, (n) => prefixes.length[n]),
      asn: Uint32Array.from(known, (n) => prefixes.asn[n]),
    },
  };
}

/** Flows take turns, packet by packet, and do not change their destinations all at once. */
function drawStream(
  population: Int32Array,
  flows: number,
  random: () => number,
): Int32Array {
  const draws = zipf(STREAM / BURST + flows, population.length, random);
  const current = Array.from({ length: flows }, (_, flow) => draws[flow]);
  const packets = shared(STREAM);
  let next = flows;
  for (let i = 0; i < packets.length; i++) {
    const flow = i % flows;
    const turn = Math.floor(i / flows);
    if ((turn + flow) % BURST === 0 && next < draws.length) {
      current[flow] = draws[next++];
    }
    packets[i] = population[current[flow]];
  }
  return packets;
}

function shared(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(length * 4));
}
