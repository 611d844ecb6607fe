/** Which passwords a keystore may have, however they reach the vault. */
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';

/** Characters; `openssl` reads at most 1023 bytes of a password. */
const maxCharacters = 128;

/**
 * The password. Throws `invalid_request` if it is empty, which programs encode in two different ways, too long, or
 * contains control characters, which people cannot enter again. Nothing is normalized: programs that read the file
 * don't do it either.
 */
export function keystorePassword(text: string): Secret<string> {
  const hint = `Use 1 to ${maxCharacters} characters.`;
  if (text === '') throw new Problem('invalid_request', { detail: 'The keystore password is empty.', hint });
  if (text.length > maxCharacters && [...text].length > maxCharacters) {
    throw new Problem('invalid_request', { detail: 'The keystore password is too long.', hint });
  }
  if (/\p{Cc}|\p{Cs}/u.test(text)) {
    throw new Problem('invalid_request', {
      detail: 'The keystore password contains a control character.',
      hint: 'Use printable characters. A line break at the end of a file does not belong to the password.',
    });
  }
  return new Secret(text);
}
