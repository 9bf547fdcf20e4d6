/** HTML put together so that what is put in cannot be taken for markup. */

/** Markup, as against text. */
export class Markup {
  constructor(readonly text: string) {}
}

/** What can be put into markup: text is escaped, lists are joined, nothing is nothing. */
export type Content = string | number | Markup | undefined | Content[];

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function textOf(content: Content): string {
  if (content === undefined) return "";
  if (content instanceof Markup) return content.text;
  if (Array.isArray(content)) return content.map(textOf).join("");
  return String(content).replace(/[&<>"']/g, (letter) => ENTITIES[letter]);
}

/** Markup with what stands in it escaped. Attributes are to stand in double quotes. */
export function markup(
  parts: TemplateStringsArray,
  ...contents: Content[]
): Markup {
  return new Markup(
    parts.reduce((text, part, i) => text + textOf(contents[i - 1]) + part),
  );
}
