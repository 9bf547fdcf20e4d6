// What the README promises of the documentation.

import { assert, assertEquals, assertThrows } from "@std/assert";

const root = new URL("../", import.meta.url);

/** An exported name, and the source in which it is declared. */
interface Export {
  name: string;
  source: string;
}

/**
 * The names that a module exports from others, with the text of the module
 * that declares each.
 *
 * @param module The module.
 * @returns The exports.
 */
async function exportsOf(module: URL): Promise<Export[]> {
  const source = await Deno.readTextFile(module);
  const found: Export[] = [];
  const lists = source.matchAll(
    /^export (?:type )?\{([^}]*)\} from "([^"]+)";/gm,
  );
  for (const [, names, from] of lists) {
    const origin = new URL(from, module);
    const text = await Deno.readTextFile(origin);
    const passedOn = await exportsOf(origin);
    for (const part of names.split(",")) {
      const name = part.replace(/^\s*(type\s)?/, "").trim();
      if (name === "") continue;
      const other = passedOn.find((one) => one.name === name);
      found.push(other ?? { name, source: text });
    }
  }
  return found;
}

/**
 * The comments before the declarations of a name, overloads included.
 *
 * @param source A module.
 * @param name The name.
 * @returns The comments' text; throws if there is none.
 */
function docOf(source: string, name: string): string {
  const kinds = "abstract class|class|const|function|interface|let|type";
  const docs: string[] = [];
  const declarations = source.matchAll(
    new RegExp(`^export (?:async )?(?:${kinds}) ${name}\\b`, "gm"),
  );
  for (const { index } of declarations) {
    const before = source.slice(0, index).replace(/(?:\/\/.*\n)+$/, "");
    const [doc] = before.match(/\/\*\*(?:(?!\*\/)[^])*\*\/\s*$/) ?? [];
    if (doc !== undefined) docs.push(doc);
  }
  if (docs.length === 0) throw new Error(`${name} is not documented`);
  return docs.join("\n");
}

/** Whether a comment has a titled example that imports the package and asserts something. */
function hasExample(doc: string): boolean {
  const examples = doc.matchAll(
    /@example \S.*\n(?:(?! \* @)[^])*?```ts\n([^]*?)```/g,
  );
  return [...examples].some(([, code]) =>
    code.includes('from "@grace/rcu";') && /\bassert\w*\(/.test(code)
  );
}

Deno.test("every export is documented with an example that asserts something", async () => {
  const exports = await exportsOf(new URL("mod.ts", root));
  // Not fewer than mod.ts has names: none was overlooked.
  const names = (await Deno.readTextFile(new URL("mod.ts", root)))
    .replace(/\/\*\*[^]*?\*\//, "")
    .match(/\b\w+(?=,|\s*\})/g);
  assertEquals(exports.map(({ name }) => name).sort(), names?.sort());
  const without = exports.filter(({ name, source }) =>
    !hasExample(docOf(source, name))
  );
  assertEquals(without.map(({ name }) => name), []);
});

Deno.test("the check of the test before notices what is missing", () => {
  const example =
    ' * @example Title\n * ```ts\n * import { a } from "@grace/rcu";';
  const good = `/**\n * A.\n *\n${example}\n * assert(a);\n * \`\`\`\n */\n`;
  const source = `${good}// deno-lint-ignore x\nexport type A = 1;\n` +
    "/** B. */\nexport interface B {}\n" +
    "export const C = 1;\n" +
    `${good.replace("assert(a);", "a;")}export class D {}\n`;
  assert(hasExample(docOf(source, "A")));
  assert(!hasExample(docOf(source, "B")));
  assertThrows(() => docOf(source, "C"), Error, "C is not documented");
  assert(!hasExample(docOf(source, "D")));
});

Deno.test("the README names no file that is not there", async () => {
  const readme = await Deno.readTextFile(new URL("README.md", root));
  const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)\)/g)];
  assert(links.length > 0);
  const { publish } = JSON.parse(
    await Deno.readTextFile(new URL("deno.json", root)),
  );
  for (const [, path] of links) {
    assert((await Deno.stat(new URL(path, root))).isFile, path);
    const [top] = path.split("/", 1);
    assert(publish.include.includes(top), `${path} is not published`);
  }
});
