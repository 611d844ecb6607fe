/**
 * Why a mail server rejected a mail, in our own words: the server's text may be the banner of any service, so
 * only its codes are shown (RFC 5321 §4.2, RFC 3463).
 */
import { shortened } from '../base/printable-text.ts';

/** What the library tells of an answer: its text begins with the code. */
export type SmtpFailure = {
  readonly message: string;
  /** The server's own text, where there was one. */
  readonly response?: string | undefined;
  /** The command that it answered, or `CONN` for its greeting. */
  readonly command?: string | undefined;
};

/** What people can do about the usual ones. */
const meanings: Readonly<Record<string, string>> = {
  '421': 'temporarily unavailable',
  '450': 'mailbox temporarily unavailable',
  '451': 'error while processing the mail',
  '452': 'insufficient storage',
  '454': 'temporary authentication failure',
  '530': 'authentication required',
  '534': 'authentication method not accepted',
  '535': 'wrong username or password',
  '550': 'no such mailbox, or relaying denied',
  '552': 'mailbox full, or mail too large',
  '553': 'address not accepted',
  '554': 'mail rejected',
};

/** The failure as the end of a sentence about the server, such as `answered 550 5.1.1 to RCPT TO: there is no such mailbox`. */
export function smtpFailure({ message, response, command }: SmtpFailure): string {
  if (!response) return `failed: ${shortened(message, 300)}`;
  const codes = smtpCodes(response);
  if (codes === undefined) return 'did not respond like a mail server';
  const asked = command === undefined || command === 'CONN' ? '' : ` to ${shortened(command, 40)}`;
  const meaning = meanings[codes.slice(0, 3)];
  return `answered ${codes}${asked}${meaning === undefined ? '' : `: ${meaning}`}`;
}

/** The reply code and, where there is one, the enhanced one behind it; undefined where the text begins with none. */
export function smtpCodes(response: string): string | undefined {
  return /^[2-5]\d\d(?=[ -]|$)(?:[ -][245]\.\d{1,3}\.\d{1,3}(?=\s|$))?/.exec(response)?.[0].replace('-', ' ');
}
