/** Takes the figures of the comparison of shared maps. */
import { turn } from "../_measure.ts";
import { Peer } from "../_workers.ts";
import { inFreshWorker } from "../_workers.ts";
import { type Contender, CONTENDERS, type Opened } from "./_contenders.ts";
import { type Entries, routeEntries } from "./_entries.ts";
import {
  ANSWER,
  PROBE,
  QUICKLY,
  RATES,
  READ,
  SLOWLY,
  type WriterOrder,
  type Written,
} from "./_shared_worker.ts";

const THREADS = import.meta.resolve("./_shared_worker.ts");

/** What others do while two threads read. */
export const SITUATIONS = [
  { name: "nobody updates", task: 0, rate: 0 },
  { name: "100 updates/s", task: SLOWLY, rate: RATES[SLOWLY] },
  { name: "10,000 updates/s", task: QUICKLY, rate: RATES[QUICKLY] },
] as const;

/** How much is done. */
export interface Length {
  rounds: number;
  /** One of them, in ms. */
  ms: number;
  questions: number;
  own: number;
  contended: number;
}

export const FULL: Length = {
  rounds: 7,
  ms: 200,
  questions: 200,
  own: 2_000,
  contended: 1_000,
};
export const QUICK: Length = { ...FULL, rounds: 5, ms: 60, questions: 40 };

/** What came out for one contender. */
export interface SharedFigures {
  name: string;
  shares: boolean;
  /** Reads a second of two threads, by situation, one number a round. */
  reads: number[][];
  /** Updates a second that were made, by situation. */
  updates: number[];
  /** How long until another thread that reads saw an update, in µs. */
  visible: number[];
  /** What two threads found that wrote at once. */
  written: Written[];
  /** Why there are no figures. */
  failed?: string;
}

/** A contender's threads. */
interface Team {
  contender: Contender;
  opened: Opened;
  readers: Peer[];
  updater: Peer;
  /** What the reader has seen of PROBE. */
  seen: Int32Array;
}

/** Takes all figures. */
export async function measureShared(
  length: Length,
  onStep: (doing: string) => void,
): Promise<SharedFigures[]> {
  const entries = await routeEntries();
  const teams: Team[] = [];
  const figures: SharedFigures[] = [];
  for (const contender of CONTENDERS) {
    onStep(`${contender.name}: starting three threads`);
    const { name, shares } = contender;
    const figure: SharedFigures = {
      name,
      shares,
      reads: SITUATIONS.map(() => []),
      updates: SITUATIONS.map(() => 0),
      visible: [],
      written: [],
    };
    figures.push(figure);
    try {
      teams.push(await startTeam(contender, entries));
    } catch (error) {
      figure.failed = String(error);
    }
  }
  const of = (team: Team) =>
    figures.find(({ name }) => name === team.contender.name)!;
  try {
    for (const [n, situation] of SITUATIONS.entries()) {
      onStep(`reads: ${situation.name}`);
      for (let round = -1; round < length.rounds; round++) {
        for (const team of teams) {
          const { reads, updates } = read(team, situation.task, length.ms);
          // The first round warms up.
          if (round < 0) continue;
          of(team).reads[n].push(reads);
          of(team).updates[n] += updates / length.rounds;
        }
      }
    }
    for (const team of teams) {
      onStep(`${team.contender.name}: until an update is seen`);
      of(team).visible = await ask(team, length.questions);
    }
  } finally {
    for (const team of teams) await endTeam(team);
  }
  for (const contender of CONTENDERS) {
    onStep(`${contender.name}: two writers`);
    const figure = figures.find(({ name }) => name === contender.name)!;
    if (figure.failed !== undefined) continue;
    figure.written = await writeAtOnce(contender, length);
  }
  return figures;
}

async function startTeam(
  contender: Contender,
  entries: Entries,
): Promise<Team> {
  const opened = await contender.create([...entries, [PROBE, {
    to: "",
    weight: 0,
  }]]);
  const keys = entries.map(([key]) => key);
  const seen = new Int32Array(new SharedArrayBuffer(4));
  const [first, second, updater] = await Promise.all(
    [1, 2, 3].map((seed) =>
      Peer.start(THREADS, "sharedPeer", {
        contender: contender.name,
        handle: opened.handle,
        keys,
        seed,
        seen,
      })
    ),
  );
  return { contender, opened, readers: [first, second], updater, seen };
}

async function endTeam({ opened, readers, updater }: Team): Promise<void> {
  await Promise.all(
    [...readers, updater].map((peer) => peer[Symbol.asyncDispose]()),
  );
  await opened.close();
}

/** Has both threads read for some ms, and the updater update. */
function read(
  { readers, updater }: Team,
  task: number,
  ms: number,
): { reads: number; updates: number } {
  updater.select(task);
  Peer.selectAll(readers, READ);
  const counts = [...readers, updater].map((peer) => peer.count);
  const begin = performance.now();
  sleep(ms);
  const done = [...readers, updater].map((peer, i) =>
    (peer.count - counts[i]) >>> 0
  );
  const seconds = (performance.now() - begin) / 1000;
  for (const peer of readers) peer.select(0);
  updater.select(0);
  return { reads: (done[0] + done[1]) / seconds, updates: done[2] / seconds };
}

/** Longest time for updates that only warm up, in ms. */
const WARM_UP = 500;
/** Longest that an update may take to be seen, in ms. */
const UNSEEN = 2_000;

/**
 * Updates while another thread reads, and waits until that has said that it has
 * seen it. By one clock, and without sleeping: two clocks differ by more than it takes.
 */
async function ask(
  { opened, readers: [reader], seen }: Team,
  questions: number,
): Promise<number[]> {
  const took: number[] = [];
  // Until the engine has compiled what sets, but no longer.
  const end = performance.now() + WARM_UP;
  for (let i = 0; i < 3_000 && performance.now() < end; i++) {
    opened.set(PROBE, { to: "", weight: 0 });
    if (i % 100 === 0) await turn();
  }
  reader.select(ANSWER);
  for (let question = 1; question <= questions; question++) {
    await turn();
    const begin = performance.now();
    opened.set(PROBE, { to: String(question), weight: question });
    let now = begin;
    while (Atomics.load(seen, 0) !== question && now - begin < UNSEEN) {
      now = performance.now();
    }
    took.push(now - begin < UNSEEN ? (now - begin) * 1000 : Infinity);
  }
  reader.select(0);
  return took;
}

async function writeAtOnce(
  contender: Contender,
  { own, contended }: Length,
): Promise<Written[]> {
  const opened = await contender.create([[PROBE, { to: "", weight: 0 }]]);
  const together = new Int32Array(new SharedArrayBuffer(4));
  try {
    return await Promise.all([0, 1].map((writer) => {
      const order: WriterOrder = {
        contender: contender.name,
        handle: opened.handle,
        writer,
        own,
        contended,
        together,
      };
      return inFreshWorker<Written>(THREADS, "writeTogether", order);
    }));
  } finally {
    await opened.close();
  }
}

const napping = new Int32Array(new SharedArrayBuffer(4));

function sleep(ms: number): void {
  Atomics.wait(napping, 0, 0, ms);
}

/** Bytes that entries take in some threads: what a process has more than with hardly any entries. */
export async function memoryOf(
  contender: string,
  threads: number,
  entries: number,
): Promise<number> {
  const run = async (count: number): Promise<number> => {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--quiet",
        "--no-check",
        "--allow-all",
        "--v8-flags=--expose-gc",
        import.meta.resolve("./_memory.ts"),
        contender,
        String(threads),
        String(count),
      ],
      env: { NO_COLOR: "1" },
      signal: AbortSignal.timeout(120_000),
    }).output();
    if (code !== 0) throw new Error(new TextDecoder().decode(stderr));
    return Number(new TextDecoder().decode(stdout));
  };
  return await run(entries) - await run(100);
}
