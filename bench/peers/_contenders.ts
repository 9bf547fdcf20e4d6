/**
 * What a program has today to give several threads one map: ours, and the
 * peers. Each is opened by the thread that measures, with its entries, and then by workers.
 */
import { json, Rcu, type RcuHandle, RcuMap, string } from "../../mod.ts";
import type { Entries, Target } from "./_entries.ts";

/** One thread's map. */
export interface Client {
  get(key: string): Target | undefined;
  set(key: string, value: Target): unknown;
  close(): unknown;
}

/** A map that others can open. */
export interface Opened extends Client {
  /** What they need; can be posted. */
  handle: unknown;
}

/** A way to share a map. */
export interface Contender {
  name: string;
  /** Whether there is one copy of the entries, whatever the number of threads. */
  shares: boolean;
  /** Makes the map, in the first thread. */
  create(entries: Entries): Promise<Opened>;
  /** Opens it, in another one. */
  open(handle: unknown): Promise<Client>;
}

// Specifiers in variables, as in `_data.ts`.
const LMDB = "npm:lmdb@3.5.6";
const SHARED_MAP = "npm:sharedmap@1.2.0";
const MULTITHREADING = "npm:multithreading@0.3.52";

/** Bytes for all entries and twice as many, as generously as each package asks for it. */
const ROOM = 2 ** 28;

const rcuMap: Contender = {
  name: "RcuMap",
  shares: true,
  create(entries) {
    const rcu = Rcu.create({ name: "creator" });
    const map = openRcuMap(rcu);
    map.replaceAll(entries);
    return Promise.resolve({ ...clientOf(rcu, map), handle: rcu.handle });
  },
  open(handle) {
    const rcu = Rcu.attach(handle as RcuHandle);
    return Promise.resolve(clientOf(rcu, openRcuMap(rcu)));
  },
};

function openRcuMap(rcu: Rcu): RcuMap<string, Target> {
  return RcuMap.open(rcu, "entries", { key: string, value: json<Target>() });
}

function clientOf(rcu: Rcu, map: RcuMap<string, Target>): Client {
  return {
    get: (key) => map.get(key),
    set: (key, value) => map.set(key, value),
    close: () => rcu.close(),
  };
}

/** A private copy in each thread, and a message for each change. */
const copies: Contender = {
  name: "a Map in each thread, BroadcastChannel",
  shares: false,
  async create(entries) {
    const handle = { channel: crypto.randomUUID(), entries };
    return { ...await this.open(handle), handle };
  },
  open(handle) {
    const { channel: name, entries } = handle as {
      channel: string;
      entries: Entries;
    };
    const map = new Map(entries);
    const channel = new BroadcastChannel(name);
    channel.onmessage = ({ data: [key, value] }) => map.set(key, value);
    return Promise.resolve({
      get: (key) => map.get(key),
      set(key, value) {
        map.set(key, value);
        channel.postMessage([key, value]);
      },
      close: () => channel.close(),
    });
  },
};

interface LmdbStore {
  get(key: string): Target | undefined;
  putSync(key: string, value: Target): void;
  transactionSync(act: () => void): void;
  close(): Promise<void>;
}

const lmdb: Contender = {
  name: "lmdb",
  shares: true,
  async create(entries) {
    const path = await Deno.makeTempDir({ prefix: "peers_lmdb_" });
    const store = await openLmdb(path);
    store.transactionSync(() => {
      for (const [key, value] of entries) store.putSync(key, value);
    });
    return {
      ...lmdbClient(store),
      handle: path,
      async close() {
        await store.close();
        await Deno.remove(path, { recursive: true });
      },
    };
  },
  async open(handle) {
    return lmdbClient(await openLmdb(handle as string));
  },
};

async function openLmdb(path: string): Promise<LmdbStore> {
  const { open } = await import(LMDB);
  return open({ path, mapSize: ROOM, noSync: true });
}

function lmdbClient(store: LmdbStore): Client {
  return {
    get: (key) => store.get(key),
    set: (key, value) => store.putSync(key, value),
    close: () => store.close(),
  };
}

interface SharedMapLike {
  get(key: string): string | undefined;
  set(key: string, value: string): void;
}

const sharedMap: Contender = {
  name: "sharedmap",
  shares: true,
  async create(entries) {
    const { default: SharedMap } = await import(SHARED_MAP);
    // Sizes are in UTF-16 units, and fixed.
    const longest = entries.reduce(
      (most, [key]) => Math.max(most, key.length),
      16,
    );
    const map: SharedMapLike = new SharedMap(
      Math.max(2 * entries.length, 2 ** 14),
      longest,
      LONGEST_VALUE,
    );
    const client = sharedMapClient(map);
    for (const [key, value] of entries) client.set(key, value);
    return { ...client, handle: map };
  },
  async open(handle) {
    const { default: SharedMap } = await import(SHARED_MAP);
    // As its documentation says: the prototype does not cross.
    Object.setPrototypeOf(handle, SharedMap.prototype);
    return sharedMapClient(handle as SharedMapLike);
  },
};

function sharedMapClient(map: SharedMapLike): Client {
  return {
    get: (key) => parsed(map.get(key)),
    set: (key, value) => map.set(key, JSON.stringify(value)),
    close() {},
  };
}

/** UTF-16 units of the JSON of a value. */
const LONGEST_VALUE = 64;

function parsed(text: string | undefined): Target | undefined {
  return text === undefined ? undefined : JSON.parse(text);
}

interface Guard extends Disposable {
  value: Record<string, Target>;
}

interface RwLock {
  blockingRead(): Guard;
  blockingWrite(): Guard;
}

const multithreading: Contender = {
  name: "multithreading: RwLock, SharedJsonBuffer",
  shares: true,
  async create(entries) {
    const { RwLock, SharedJsonBuffer } = await import(MULTITHREADING);
    const object = Object.fromEntries(entries);
    const lock = new RwLock(new SharedJsonBuffer(object, { size: ROOM }));
    // What it does itself for the threads of its own pool.
    const [serialize] = Object.getOwnPropertySymbols(RwLock.prototype);
    const [handle] = lock[serialize]();
    return { ...lockClient(lock), handle };
  },
  async open(handle) {
    const { RwLock } = await import(MULTITHREADING);
    const [deserialize] = Object.getOwnPropertySymbols(RwLock);
    return lockClient(RwLock[deserialize](handle));
  },
};

function lockClient(lock: RwLock): Client {
  return {
    get(key) {
      using guard = lock.blockingRead();
      // A proxy, which is good for nothing when the lock has been given back.
      const value = guard.value[key];
      return value && { to: value.to, weight: value.weight };
    },
    set(key, value) {
      using guard = lock.blockingWrite();
      guard.value[key] = value;
    },
    close() {},
  };
}

const sqlite: Contender = {
  name: "node:sqlite, memory-mapped",
  shares: true,
  async create(entries) {
    const directory = await Deno.makeTempDir({ prefix: "peers_sqlite_" });
    const path = `${directory}/entries.db`;
    const database = await openSqlite(path);
    database.exec(
      "create table entries(key text primary key, value text) without rowid",
    );
    database.exec("begin");
    const client = sqliteClient(database);
    for (const [key, value] of entries) client.set(key, value);
    database.exec("commit");
    return {
      ...client,
      handle: path,
      async close() {
        database.close();
        await Deno.remove(directory, { recursive: true });
      },
    };
  },
  async open(handle) {
    return sqliteClient(await openSqlite(handle as string));
  },
};

type Database = InstanceType<typeof import("node:sqlite").DatabaseSync>;

async function openSqlite(path: string): Promise<Database> {
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(path);
  database.exec(`
    pragma journal_mode = wal;
    pragma synchronous = off;
    pragma busy_timeout = 10000;
    pragma mmap_size = ${ROOM};
  `);
  return database;
}

function sqliteClient(database: Database): Client {
  const get = database.prepare("select value from entries where key = ?");
  const set = database.prepare("insert or replace into entries values(?, ?)");
  return {
    get: (key) => parsed(get.get(key)?.value as string | undefined),
    set: (key, value) => set.run(key, JSON.stringify(value)),
    close: () => database.close(),
  };
}

/** All of them; ours first, then the base. */
export const CONTENDERS: readonly Contender[] = [
  rcuMap,
  copies,
  lmdb,
  multithreading,
  sharedMap,
  sqlite,
];

/** The one of a name. */
export function contenderOf(name: string): Contender {
  return CONTENDERS.find((contender) => contender.name === name)!;
}
