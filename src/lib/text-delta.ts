/** A text as a change of another: so many characters of its beginning and end are the other's. */
export interface TextDelta {
  prefix: number;
  suffix: number;
  middle: string;
}

/** What has to be put between the beginning and the end that two texts share. Lengths are UTF-16 units. */
export function deltaOf(base: string, text: string): TextDelta {
  const most = Math.min(base.length, text.length);
  let prefix = 0;
  while (prefix < most && base.charCodeAt(prefix) === text.charCodeAt(prefix)) prefix++;
  // Half of a surrogate pair cannot be stored as UTF-8.
  if (prefix > 0 && isHighSurrogate(text.charCodeAt(prefix - 1))) prefix--;
  let suffix = 0;
  while (
    suffix < most - prefix &&
    base.charCodeAt(base.length - 1 - suffix) === text.charCodeAt(text.length - 1 - suffix)
  )
    suffix++;
  if (suffix > 0 && isLowSurrogate(text.charCodeAt(text.length - suffix))) suffix--;
  return { prefix, suffix, middle: text.slice(prefix, text.length - suffix) };
}

export const applyDelta = (base: string, { prefix, suffix, middle }: TextDelta): string =>
  base.slice(0, prefix) + middle + base.slice(base.length - suffix);

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdbff;
const isLowSurrogate = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff;
