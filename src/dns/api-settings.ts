/** Settings that secret files of DNS providers have in common, with messages for whoever wrote the file. */
import { z } from 'zod';
import { isSecureUrl } from '../base/secure-url.ts';

/** A text of visible ASCII, such as a token or a key id; `what` ends "is missing:" and "must be". */
export const credential = (what: string) =>
  z
    .string({ error: `is missing or no text: it must be ${what}` })
    .regex(/^[\x21-\x7e]+$/, { error: `must be ${what}, without blanks and line breaks` });

/** Where an API is found. Tokens go there, so it must be https, except on this very machine. */
export const apiUrl = z.string({ error: 'must be a URL' }).refine(isApiUrl, {
  error: 'must be an https:// URL without user, query and fragment (http:// only for this very machine)',
});

function isApiUrl(text: string): boolean {
  return isSecureUrl(text) && new URL(text).search === '';
}
