/** Real strings: the route templates of an HTTP API, and domains of a blocklist. */

const ROUTES = "npm:@octokit/openapi@23.0.2/generated/api.github.com.json";
const DOMAINS = "npm:disposable-email-domains@1.0.62/index.json";

async function imported<T>(specifier: string): Promise<T> {
  // In a variable, as in `_data.ts`.
  const module = await import(specifier, { with: { type: "json" } });
  return module.default as T;
}

/** 811 route templates of GitHub's API (`@octokit/openapi`, MIT). */
export async function routeTemplates(): Promise<string[]> {
  const { paths } = await imported<{ paths: Record<string, unknown> }>(ROUTES);
  return Object.keys(paths);
}

/** 121,570 domains of throw-away addresses (`disposable-email-domains`, MIT). */
export function domains(): Promise<string[]> {
  return imported<string[]>(DOMAINS);
}
