/** Characters of each group. */
const GROUPS = [8, 4, 4, 4, 12];

/** Where each group begins. */
const STARTS = [0, 9, 14, 19, 24];

const PREFIX = "urn:uuid:";

/** What a UUID may be written in besides its plain form, as FastAPI's validation takes it: braces, or `urn:uuid:`. */
function bare(text: string): { digits: string; offset: number } {
  if (text.startsWith("{") && text.endsWith("}") && text.length > 1) return { digits: text.slice(1, -1), offset: 1 };
  if (text.startsWith(PREFIX)) return { digits: text.slice(PREFIX.length), offset: PREFIX.length };
  return { digits: text, offset: 0 };
}

const HYPHENED = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Lower case with dashes; undefined for what is no UUID. Without dashes it is one only in the plain form. */
export function uuidOf(text: string): string | undefined {
  const { digits, offset } = bare(text);
  const plain = offset === 0 ? digits.replace(/^(\w{8})(\w{4})(\w{4})(\w{4})(\w{12})$/, "$1-$2-$3-$4-$5") : digits;
  const id = plain.toLowerCase();
  return HYPHENED.test(id) ? id : undefined;
}

/** Why a text is no UUID, in the words that pydantic has from its parser. */
export function uuidFault(text: string): string {
  const { digits, offset } = bare(text);
  const odd = /[^0-9a-fA-F-]/u.exec(digits);
  if (odd) return `invalid character: found \`${odd[0]}\` at ${odd.index + offset + 1}`;
  const groups = digits.split("-");
  if (groups.length === 1 && offset === 0)
    return `invalid length: expected length 32 for simple format, found ${digits.length}`;
  if (groups.length !== GROUPS.length) return `invalid group count: expected 5, found ${groups.length}`;
  const wrong = groups.findIndex((group, index) => group.length !== GROUPS[index]);
  const found = wrong === 4 ? text.length - (STARTS[4] as number) : groups[wrong]?.length;
  return `invalid group length in group ${wrong}: expected ${GROUPS[wrong]}, found ${found}`;
}
