/**
 * The names that a certificate signing request asks for (RFC 2985 §5.4.2, RFC 5280 §4.2.1.6): those of its
 * subjectAltName, and its common name if that is a host name. Other requested extensions are the CA's to decide.
 */
import { type Identifier, isAddress, parseIdentifier } from '../../base/identifier.ts';
import { parseEmail, parseUri } from '../../base/leaf-names.ts';
import { DerReader, type DerValue, derTags, dottedIdentifier } from '../der-reader.ts';
import { printable } from './certificate-facts.ts';
import { RequestRefused } from './request-refused.ts';

export type RequestedNames = {
  /** The common name first if it is one of them. */
  readonly domains: readonly Identifier[];
  readonly uris: readonly string[];
  readonly emails: readonly string[];
  /** The common name of the subject. */
  readonly commonName: string | undefined;
};

const extensionRequest = '2a864886f70d01090e';
const commonNameType = '550403';
const subjectAltName = '551d11';
const basicConstraints = '551d13';
/** Key usage, extended key usage and subject key identifier: the CA sets them itself. */
const known = new Set([subjectAltName, basicConstraints, '551d0f', '551d25', '551d0e']);

const stringTypes: Readonly<Record<number, (bytes: Buffer) => string>> = {
  12: (bytes) => bytes.toString('utf8'),
  19: (bytes) => bytes.toString('latin1'),
  20: (bytes) => bytes.toString('latin1'),
  22: (bytes) => bytes.toString('latin1'),
  30: (bytes) => (bytes.length % 2 === 0 ? Buffer.from(bytes).swap16().toString('utf16le') : ''),
};

const otherNames: Readonly<Record<number, string>> = {
  160: 'another type (otherName)',
  163: 'another type (x400Address)',
  164: 'another type (directoryName)',
  165: 'another type (ediPartyName)',
  136: 'another type (registeredID)',
};

/**
 * Reads the subject and the attributes. Throws RequestRefused for names and extensions that no CA here can issue, and
 * DerError.
 */
export function requestedNames(subject: DerReader, attributes: DerReader | undefined): RequestedNames {
  const commonName = commonNameIn(subject);
  const names = { domains: [] as Identifier[], uris: [] as string[], emails: [] as string[] };
  for (const { id, content } of extensionsIn(attributes)) {
    if (id === subjectAltName) readNames(content, names);
    if (id === basicConstraints) refuseAuthority(content);
  }
  const host = commonName === undefined ? undefined : hostName(commonName);
  return {
    domains: [...new Set(host === undefined ? names.domains : [host, ...names.domains])],
    uris: [...new Set(names.uris)],
    emails: [...new Set(names.emails)],
    commonName,
  };
}

/** A common name that is a name of the certificate: with a dot, because a single word may be a person. */
function hostName(text: string): Identifier | undefined {
  const found = parseIdentifier(text);
  return found !== undefined && (found.includes('.') || isAddress(found)) ? found : undefined;
}

/** The first common name. */
function commonNameIn(subject: DerReader): string | undefined {
  let first: string | undefined;
  while (!subject.isDone) {
    const set = subject.enter(derTags.set);
    while (!set.isDone) {
      const part = set.enter(derTags.sequence);
      const type = part.take(derTags.objectIdentifier).content.toString('hex');
      const { tag, content } = part.next();
      part.end();
      if (type === commonNameType) first ??= stringTypes[tag]?.(content);
    }
  }
  return first;
}

type Extension = { readonly id: string; readonly content: Buffer };

/** The requested extensions, each once. Throws for a critical one that is unknown. */
function extensionsIn(attributes: DerReader | undefined): Extension[] {
  const found = new Map<string, Extension>();
  while (attributes?.isDone === false) {
    const attribute = attributes.enter(derTags.sequence);
    const type = attribute.take(derTags.objectIdentifier).content.toString('hex');
    const values = attribute.enter(derTags.set);
    attribute.end();
    if (type !== extensionRequest) continue;
    const list = values.enter(derTags.sequence);
    values.end();
    while (!list.isDone) {
      const extension = extensionIn(list.enter(derTags.sequence));
      if (found.has(extension.id)) throw new RequestRefused('asks for the same extension twice');
      found.set(extension.id, extension);
    }
  }
  return [...found.values()];
}

function extensionIn(extension: DerReader): Extension {
  const type = extension.take(derTags.objectIdentifier).content;
  const isCritical = extension.nextTag === derTags.boolean && extension.next().content[0] !== 0;
  const { content } = extension.take(derTags.octetString);
  extension.end();
  const id = type.toString('hex');
  if (isCritical && !known.has(id)) {
    throw new RequestRefused(
      `asks for the critical extension ${dottedIdentifier(type)}, which is not supported; leave it out`,
    );
  }
  return { id, content };
}

/** BasicConstraints (RFC 5280 §4.2.1.9). */
function refuseAuthority(content: Buffer): void {
  const constraints = new DerReader(content).enter(derTags.sequence);
  if (constraints.nextTag !== derTags.boolean || constraints.next().content[0] === 0) return;
  throw new RequestRefused('asks for a CA certificate; leave basicConstraints out');
}

function readNames(
  content: Buffer,
  names: { readonly domains: Identifier[]; readonly uris: string[]; readonly emails: string[] },
): void {
  const file = new DerReader(content);
  const list = file.enter(derTags.sequence);
  file.end();
  while (!list.isDone) {
    const name = list.next();
    const text = name.content.toString('latin1');
    const isAscii = name.content.every((byte) => byte < 0x80);
    if (name.tag === 0x82)
      names.domains.push(usable(isAscii ? parseIdentifier(text) : undefined, 'DNS name', text));
    else if (name.tag === 0x87)
      names.domains.push(usable(addressIn(name), 'address', name.content.toString('hex')));
    else if (name.tag === 0x81) names.emails.push(usable(parseEmail(text), 'email address', text));
    else if (name.tag === 0x86) names.uris.push(usable(parseUri(text), 'URI', text));
    else {
      const type = otherNames[name.tag] ?? 'an unknown type';
      throw new RequestRefused(
        `asks for a name of ${type}; use DNS names, IP addresses, URIs and email addresses`,
      );
    }
  }
}

function usable<T>(name: T | undefined, kind: string, text: string): T {
  if (name !== undefined) return name;
  throw new RequestRefused(`asks for ${JSON.stringify(printable(text))}, which is not a valid ${kind}`);
}

function addressIn({ content }: DerValue): Identifier | undefined {
  if (content.length === 4) return parseIdentifier([...content].join('.'));
  if (content.length !== 16) return undefined;
  const groups = content.toString('hex').match(/.{4}/g) ?? [];
  return parseIdentifier(groups.join(':'));
}
