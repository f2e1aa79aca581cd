/** One server-sent event, its data parsed. */
export interface SseEvent {
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into data of every shape
  data: any;
  id: string | undefined;
}

/** The events of a whole stream; comments are left out. */
export function parseSse(text: string): SseEvent[] {
  return text
    .split("\n\n")
    .map((block) => block.split("\n"))
    .filter((lines) => lines.some((line) => line.startsWith("event:")))
    .map((lines) => {
      const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      return { event: field("event") ?? "", data: JSON.parse(field("data") ?? "null"), id: field("id") };
    });
}
