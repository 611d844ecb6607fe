/**
 * Reads the names to which a CA certificate confines what is issued below it (RFC 5280 §4.2.1.10). Kinds of names that
 * no certificate of the vault has are left out; constraints on subjects and constraints that cannot be understood are
 * refused.
 */
import { DerError, DerReader, derTags } from '../der-reader.ts';
import { RequestRefused } from './request-refused.ts';

/** A network as verifiers compare it: the bits of the address that the mask has. */
export type ConstrainedNetwork = { readonly address: Buffer; readonly mask: Buffer };

/** Lower-case texts. A leading dot stands for the hosts below; an empty text for all. */
export type NameLists = {
  readonly dns: readonly string[];
  readonly email: readonly string[];
  readonly uri: readonly string[];
  readonly networks: readonly ConstrainedNetwork[];
};

export type ConstrainedNames = { readonly permitted: NameLists; readonly excluded: NameLists };

/** The most names in the constraints of one certificate: each name of each certificate is compared with each. */
const maxNames = 500;

const emailTag = 0x81;
const dnsTag = 0x82;
const uriTag = 0x86;
const ipTag = 0x87;
const directoryTag = 0xa4;

/** One label, or several; labels that verifiers compare as they are. */
const host = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){0,126}$/;
const mailbox = /^[^\s@]{1,64}$/;

/** The value of the extension. Throws RequestRefused with a clause about the certificate, and DerError. */
export function constrainedNames(content: Buffer): ConstrainedNames {
  const file = new DerReader(content);
  const constraints = file.enter(derTags.sequence);
  file.end();
  const count = { left: maxNames };
  const permitted = constraints.nextTag === 0xa0 ? subtrees(constraints.next().content, count) : noNames;
  const excluded = constraints.nextTag === 0xa1 ? subtrees(constraints.next().content, count) : noNames;
  constraints.end();
  return { permitted, excluded };
}

const noNames: NameLists = { dns: [], email: [], uri: [], networks: [] };

function subtrees(content: Buffer, count: { left: number }): NameLists {
  const lists = {
    dns: [] as string[],
    email: [] as string[],
    uri: [] as string[],
    networks: [] as ConstrainedNetwork[],
  };
  const list = new DerReader(content);
  while (!list.isDone) {
    count.left -= 1;
    if (count.left < 0) throw new RequestRefused(`has more than ${maxNames} name constraints`);
    const subtree = list.enter(derTags.sequence);
    const { tag, content: base } = subtree.next();
    // RFC 5280 has no use for a minimum or a maximum.
    if (!subtree.isDone) throw new RequestRefused('has name constraints with a minimum or a maximum');
    if (tag === dnsTag) lists.dns.push(known(base, isHosts, 'domain'));
    else if (tag === emailTag) lists.email.push(known(base, isEmailScope, 'mailbox or host'));
    else if (tag === uriTag) lists.uri.push(known(base, isHosts, 'host of URIs'));
    else if (tag === ipTag) lists.networks.push(networkIn(base));
    else if (tag === directoryTag) {
      throw new RequestRefused(
        'confines the subjects of certificates (a name constraint of type directoryName), which the vault cannot follow; it names its certificates by domain. Ask the CA for a certificate without it',
      );
    }
  }
  return lists;
}

function known(base: Buffer, isValid: (text: string) => boolean, kind: string): string {
  const text = base.toString('latin1');
  if (!isValid(text.toLowerCase())) {
    throw new RequestRefused(
      `has a name constraint that is no ${kind}: ${JSON.stringify(text.slice(0, 100))}`,
    );
  }
  // The part of a mailbox before the at sign keeps its case (RFC 5280 §7.5).
  const at = text.lastIndexOf('@') + 1;
  return text.slice(0, at) + text.slice(at).toLowerCase();
}

function isHosts(text: string): boolean {
  return text === '' || host.test(text.replace(/^\./, ''));
}

function isEmailScope(text: string): boolean {
  const at = text.lastIndexOf('@');
  if (at === -1) return isHosts(text);
  return mailbox.test(text.slice(0, at)) && host.test(text.slice(at + 1));
}

/** Address and mask, as long as each other. */
function networkIn(base: Buffer): ConstrainedNetwork {
  if (base.length !== 8 && base.length !== 32) throw new DerError('has a network of another length');
  const half = base.length / 2;
  return { address: base.subarray(0, half), mask: base.subarray(half) };
}
