// The gate through which threads of tests go together.

import { assertThrows } from "@std/assert";
import { Gate, GATE_WORDS } from "./_gate.ts";
import { sharedWords } from "./_workers.ts";

Deno.test("a gate that one thread has broken lets no other one wait", () => {
  const words = sharedWords(GATE_WORDS);
  const [here, away] = [new Gate(words, 2, 0), new Gate(words, 2, 0)];
  away.break();
  assertThrows(() => here.pass(), Error, "Another thread has failed");
});

Deno.test("a gate stays broken when the last thread comes", () => {
  const words = sharedWords(GATE_WORDS);
  const [first, last] = [new Gate(words, 2, 0), new Gate(words, 2, 0)];
  first.break();
  assertThrows(() => first.pass(), Error, "Another thread has failed");
  assertThrows(() => last.pass(), Error, "Another thread has failed");
});
