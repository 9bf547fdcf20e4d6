// A real server: `deno serve --parallel`, asked over HTTP, whose threads share their configuration.

import { assert, assertEquals, assertGreater } from "@std/assert";
import { Server } from "./_processes.ts";
import type { Decision } from "./server/_config.ts";

const APP = import.meta.resolve("./server/app.ts");
/** A domain of the list. */
const LISTED = "0-mail.com";
const RELOADS = 6;
/** Requests under way at a time. */
const CLIENTS = 6;

type Answer = Decision & { thread: string };

/** A request on a connection of its own, so that any thread may get it. */
async function ask(
  server: Server,
  path: string,
  post = false,
): Promise<Response> {
  return await fetch(server.url + path, {
    method: post ? "POST" : "GET",
    headers: { connection: "close" },
  });
}

async function decide(server: Server, i: number): Promise<Answer> {
  const query = new URLSearchParams({
    path: `/route/${i % 100}`,
    flag: `flag ${i % 20}`,
    domain: i % 2 === 0 ? LISTED : "example.org",
  });
  const response = await ask(server, `/decide?${query}`);
  assertEquals(response.status, 200);
  return await response.json();
}

/** Asserts that an answer is from one configuration. */
function assertWhole(answer: Answer, i: number): void {
  const { generation, target, flag, blocked } = answer;
  if (generation === 0) {
    assertEquals([target, flag, blocked], [undefined, undefined, undefined]);
    return;
  }
  assertEquals(target, {
    to: `10.0.0.${generation}`,
    generation,
  });
  assertEquals(flag, { on: (generation + i % 20) % 2 === 0, generation });
  assertEquals(blocked, i % 2 === 0 ? generation : undefined);
}

Deno.test("the threads of deno serve --parallel never mix two configurations, nor use an old one after a reload", async () => {
  await using server = await Server.start(APP, 2, ["--no-check", "--no-lock"]);
  const threads = new Set<string>();
  const seen = new Set<number>();
  let asked = 0;
  /** What every request that begins from now on must have. */
  let least = 0;
  let done = false;
  const clients = Array.from({ length: CLIENTS }, async () => {
    // Until all has been reloaded, and both threads have answered under the last configuration.
    while (!done || threads.size < 2) {
      const i = asked++;
      const atLeast = least;
      const answer = await decide(server, i);
      assertWhole(answer, i);
      assert(
        answer.generation >= atLeast,
        `generation ${answer.generation} after ${atLeast}`,
      );
      threads.add(answer.thread);
      seen.add(answer.generation);
    }
  });
  const reloads = (async () => {
    try {
      for (let reload = 1; reload <= RELOADS; reload++) {
        const response = await ask(server, "/reload", true);
        const { generation, domains } = await response.json();
        assertEquals([generation, domains], [reload, 121_570]);
        least = generation;
      }
    } finally {
      done = true;
    }
  })();
  await Promise.all([reloads, ...clients]);
  assertEquals(threads.size, 2, "both threads have answered");
  assertGreater(asked, RELOADS);
  assert(seen.has(RELOADS), "the last configuration was seen");
  assertEquals(server.log.match(/error|panic/i), null, server.log);
});
