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
  '421': 'it is not available now',
  '450': 'the mailbox is not available now',
  '451': 'it failed in processing the mail',
  '452': 'it has no room now',
  '454': 'it cannot authenticate now',
  '530': 'it wants a name and password',
  '534': 'it does not accept this kind of sign-in',
  '535': 'the name or password is wrong',
  '550': 'there is no such mailbox, or it does not send on for this sender',
  '552': 'the mailbox is full, or the mail too large',
  '553': 'it does not accept the address',
  '554': 'it refuses the mail',
};

/** The failure as the end of a sentence about the server, such as `answered 550 5.1.1 to RCPT TO: there is no such mailbox`. */
export function smtpFailure({ message, response, command }: SmtpFailure): string {
  if (!response) return `failed: ${shortened(message, 300)}`;
  const codes = smtpCodes(response);
  if (codes === undefined) return 'does not answer as a mail server does';
  const asked = command === undefined || command === 'CONN' ? '' : ` to ${shortened(command, 40)}`;
  const meaning = meanings[codes.slice(0, 3)];
  return `answered ${codes}${asked}${meaning === undefined ? '' : `: ${meaning}`}`;
}

/** The reply code and, where there is one, the enhanced one behind it; undefined where the text begins with none. */
export function smtpCodes(response: string): string | undefined {
  return /^[2-5]\d\d(?=[ -]|$)(?:[ -][245]\.\d{1,3}\.\d{1,3}(?=\s|$))?/.exec(response)?.[0].replace('-', ' ');
}
