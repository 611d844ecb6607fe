/** A master key as printed by a program. Key stores differ in what they can print: bytes, or only text. */
import { Secret } from '../../base/secret.ts';
import { masterKeySize } from './master-key.ts';

const hexadecimal = /^[0-9a-f]{64}$/i;
/** Also the URL alphabet (RFC 4648 §5), with or without padding. */
const base64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/**
 * The key in `printed`: 32 bytes, 64 hexadecimal digits, or base64; text may be surrounded by white space. Undefined
 * for anything else, including 32 bytes of plain text, which are half a hexadecimal key or a password.
 */
export function printedKey(printed: Buffer): Secret | undefined {
  if (printed.length === masterKeySize) return isText(printed) ? undefined : new Secret(Buffer.from(printed));
  const text = printed.toString('latin1').trim();
  if (hexadecimal.test(text)) return new Secret(Buffer.from(text, 'hex'));
  return base64.test(text) ? new Secret(Buffer.from(text, 'base64url')) : undefined;
}

function isText(bytes: Buffer): boolean {
  return bytes.every((byte) => (byte >= 0x20 && byte < 0x7f) || byte === 0x0a || byte === 0x0d);
}
