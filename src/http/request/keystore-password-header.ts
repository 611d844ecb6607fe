/** The request header `Keystore-Password`: header values are bytes, passwords are Unicode. */
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { keystorePassword } from '../../crypto/secrets/keystore-password.ts';

/** The name of the header, in lower case. */
export const keystorePasswordHeader = 'keystore-password';

/** The prefix of percent-encoded values (RFC 8187 §3.2.1, without a language). */
const encodedPrefix = "utf-8''";

/**
 * The password in the lines of the header, which Node decodes as Latin-1; undefined if there are none. A value is
 * UTF-8, or after `UTF-8''` percent-encoded UTF-8, for spaces at either end and for clients that send ASCII only.
 * Throws `invalid_request`, without the value.
 */
export function keystorePasswordIn(lines: readonly string[]): Secret<string> | undefined {
  const [line, ...more] = lines;
  if (line === undefined) return undefined;
  if (more.length > 0) {
    throw new Problem('invalid_request', {
      detail: 'Keystore-Password was sent more than once.',
      hint: 'Send the header once.',
    });
  }
  const encoded = line.slice(0, encodedPrefix.length).toLowerCase() === encodedPrefix;
  const text = encoded ? percentDecoded(line.slice(encodedPrefix.length)) : utf8(line);
  if (text !== undefined) return keystorePassword(text);
  throw new Problem('invalid_request', {
    detail: 'Keystore-Password is not UTF-8.',
    hint: "Send the password as UTF-8, or percent-encoded after UTF-8'', such as UTF-8''caf%C3%A9.",
  });
}

function utf8(latin1: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(latin1, 'latin1'));
  } catch {
    // Not UTF-8; the caller says so.
    return undefined;
  }
}

function percentDecoded(value: string): string | undefined {
  try {
    return /^[\x20-\x7e]*$/.test(value) ? decodeURIComponent(value) : undefined;
  } catch {
    // A broken escape; the caller says so.
    return undefined;
  }
}
