/**
 * A server for `deno serve --parallel` whose threads share their configuration.
 *
 * - `/decide?path=P&flag=F&domain=D` answers from one configuration.
 * - `/reload` loads the next one, and answers when no thread uses an older one.
 */
import { type Config, SharedConfig } from "./_config.ts";

const PACKAGE = "npm:disposable-email-domains@1.0.62/index.json";

/** Which thread answered. */
const thread = crypto.randomUUID();
const config = await SharedConfig.connect("server");
const { default: domains } = await import(PACKAGE, { with: { type: "json" } });

function make(generation: number): Config {
  const to = `10.0.${generation >> 8}.${generation & 255}`;
  return {
    generation,
    routes: Array.from(
      { length: 100 },
      (_, i) => [`/route/${i}`, { to, generation }],
    ),
    flags: Array.from(
      { length: 20 },
      (_, i) => [`flag ${i}`, { on: (generation + i) % 2 === 0, generation }],
    ),
    blocklist: domains as string[],
  };
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const of = (name: string) => searchParams.get(name) ?? "";
    if (pathname === "/decide") {
      const decision = config.decide(of("path"), of("flag"), of("domain"));
      return Response.json({ thread, ...decision });
    }
    if (pathname === "/reload" && request.method === "POST") {
      const generation = await config.reload(make);
      return Response.json({ thread, generation, domains: domains.length });
    }
    return new Response("not found", { status: 404 });
  },
} satisfies Deno.ServeDefaultExport;
