/** How to reach the owner of an account (RFC 8555 §7.3): by email only. */
import { parseEmail } from '../../../base/leaf-names.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';

const maxContacts = 10;
const scheme = 'mailto:';

/**
 * The contacts as they are stored. Throws `unsupportedContact` for other URLs, and `invalidContact` for one that is no
 * single address.
 */
export function readContacts(contacts: readonly string[]): string[] {
  if (contacts.length > maxContacts) {
    throw new AcmeProblem('invalidContact', `An account has at most ${maxContacts} contacts.`);
  }
  return [...new Set(contacts.map(readContact))];
}

function readContact(contact: string): string {
  if (contact.slice(0, scheme.length).toLowerCase() !== scheme) {
    throw new AcmeProblem('unsupportedContact', 'Contacts must be URLs that begin with "mailto:".');
  }
  const address = addressIn(contact.slice(scheme.length));
  if (address === undefined) {
    throw new AcmeProblem(
      'invalidContact',
      'A contact must be "mailto:" and one email address, without header fields.',
    );
  }
  return `${scheme}${address}`;
}

function addressIn(encoded: string): string | undefined {
  if (/[?,#]/.test(encoded)) return undefined;
  try {
    return parseEmail(decodeURIComponent(encoded));
  } catch {
    // Not percent-encoding.
    return undefined;
  }
}
