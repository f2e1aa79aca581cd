import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { ApiError } from "../platform/errors.ts";

const HOUR_MS = 60 * 60 * 1000;
const VALID_MS = 24 * HOUR_MS;

/** The first characters of a secret identify its attachment. The others are never sent. */
const ID_CHARS = 16;

const LINK = new RegExp(`^([0-9a-f]{${ID_CHARS}})\\.(\\d{1,12})\\.([0-9a-f]{32})$`);

/** The secret of a new attachment. Attachments of earlier versions have half as many characters. */
export const newAttachmentSecret = (): string => randomBytes(32).toString("hex");

/**
 * The part of a URL that grants access to an attachment for 24 hours without an API key. Links of the same hour are equal, so they are
 * valid for up to 25 hours.
 */
export function signAttachmentLink(secret: string, now_ms: number): string {
  const expires_ms = Math.floor(now_ms / HOUR_MS) * HOUR_MS + HOUR_MS + VALID_MS;
  const text = `${secret.slice(0, ID_CHARS)}.${expires_ms / 1000}`;
  return `${text}.${signatureOf(secret, text)}`;
}

/**
 * Finds the attachment of a link.
 *
 * @param findSecrets returns the attachments whose secret begins with the text
 * @returns undefined if the attachment does not exist, or the link was not created by {@link signAttachmentLink}
 * @throws ApiError when the link has expired
 */
export async function openAttachmentLink<T extends { token: string }>(
  link: string,
  now_ms: number,
  findSecrets: (beginning: string) => Promise<T[]>,
): Promise<T | undefined> {
  const [, id, expires_s, signature] = LINK.exec(link) ?? [];
  if (id === undefined || signature === undefined) return undefined;
  const sent = Buffer.from(signature);
  const isSigned = ({ token }: T) => timingSafeEqual(Buffer.from(signatureOf(token, `${id}.${expires_s}`)), sent);
  const found = (await findSecrets(id)).find(isSigned);
  if (found && Number(expires_s) * 1000 <= now_ms) throw new ApiError("attachment_link_expired");
  return found;
}

/** 128 bits in hexadecimal. */
const signatureOf = (secret: string, text: string): string =>
  createHmac("sha256", secret).update(text).digest("hex").slice(0, 32);
