/** Downloads the issued certificate (RFC 8555 §7.4.2), verifies it and selects the preferred chain. */
import { createPublicKey, type X509Certificate } from 'node:crypto';
import { parseIdentifier } from '../base/identifier.ts';
import { readPemBlocks } from '../crypto/pem.ts';
import { chainFrom } from '../crypto/x509/certificate-chain.ts';
import { factsOf, openCertificate, titleOf } from '../crypto/x509/certificate-facts.ts';
import { type AcmeAnswer, contentTypeOf, unexpected } from './acme-answer.ts';
import type { AcmeClient } from './acme-client.ts';
import { AcmeError } from './acme-error.ts';
import type { AcmeAccount, AcmeIdentifier } from './acme-types.ts';

/** The certificate is for another key: the CA reused an order for the same names that another request finalized. */
export class OtherKeyError extends AcmeError {}

export type WantedCertificate = {
  /** SPKI DER of the key that the certificate must have. */
  readonly publicKey: Buffer;
  /** The names that it must contain; it may contain more. */
  readonly identifiers: readonly AcmeIdentifier[];
  /** The common name of the root, or of another certificate of the chain. */
  readonly preferredChain: string | undefined;
};

/** DER; the chain goes from the issuing CA upwards, without the root. */
export type DownloadedCertificate = { readonly leaf: Buffer; readonly chain: Buffer[] };

/** `all` are the related certificates that the CA sent: leaf, chain, and the root if present. */
type Candidate = DownloadedCertificate & { readonly all: readonly X509Certificate[] };

const mediaType = 'application/pem-certificate-chain';
const expected = 'a certificate chain';
const begin = '-----BEGIN CERTIFICATE-----';
const maxCertificates = 20;
const maxAlternates = 10;

const link = /<([^<>]*)>((?:\s*;\s*[^\s;,="]+\s*=\s*(?:"[^"]*"|[^\s;,"]+))*)/g;
const linkParameter = /;\s*([^\s;,="]+)\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/g;

/**
 * Downloads the certificate of a valid order. If the default chain is not the preferred one, the alternates are tried,
 * and the default is used if none matches. Throws AcmeError; `protocol` for a certificate of another key, one without
 * all names, or one with unrelated certificates.
 */
export async function downloadCertificate(
  client: AcmeClient,
  account: AcmeAccount,
  url: string,
  wanted: WantedCertificate,
  signal: AbortSignal,
): Promise<DownloadedCertificate> {
  const now = client.context.world.now();
  const answer = await client.postAsGet(url, account, signal, mediaType);
  const first = readChain(answer, wanted, now);
  const { preferredChain } = wanted;
  const found =
    preferredChain === undefined || isIssuedAtTheTopBy(first, preferredChain)
      ? first
      : await preferred(client, account, { answer, first, wanted, name: preferredChain }, signal);
  return { leaf: found.leaf, chain: found.chain };
}

type Search = {
  readonly answer: AcmeAnswer;
  readonly first: Candidate;
  readonly wanted: WantedCertificate;
  readonly name: string;
};

async function preferred(
  client: AcmeClient,
  account: AcmeAccount,
  { answer, first, wanted, name }: Search,
  signal: AbortSignal,
): Promise<Candidate> {
  const { world, log } = client.context;
  const candidates = [first];
  for (const url of alternates(answer.headers.link, answer.url).slice(0, maxAlternates)) {
    try {
      const alternate = await client.postAsGet(url, account, signal, mediaType);
      candidates.push(readChain(alternate, wanted, world.now()));
    } catch (error) {
      // A valid certificate has already been downloaded: a failed alternate must not discard it.
      if (!(error instanceof AcmeError) || error.kind === 'aborted') throw error;
      log.warn({ url, reason: error.message }, 'failed to download an alternate chain');
    }
  }
  const found =
    candidates.find((candidate) => isIssuedAtTheTopBy(candidate, name)) ??
    candidates.find(({ all }) => all.slice(1).some(({ subject }) => commonNamesIn(subject).includes(name)));
  if (found === undefined)
    log.warn({ preferredChain: name }, 'preferred chain not offered by the CA; using its default chain');
  return found ?? first;
}

/**
 * The absolute URLs of all links with rel="alternate" in a Link header (RFC 8288), in order and each once. Relative
 * ones are resolved with `base`.
 */
export function alternates(header: string | undefined, base: string): string[] {
  const found = [...(header ?? '').matchAll(link)].flatMap(([, target = '', parameters = '']) => {
    const rel = [...parameters.matchAll(linkParameter)].find(([, name]) => name?.toLowerCase() === 'rel');
    const relations = (rel?.[2] ?? rel?.[3] ?? '').toLowerCase().split(/\s+/);
    return relations.includes('alternate') && URL.canParse(target, base) ? [new URL(target, base).href] : [];
  });
  return [...new Set(found)];
}

function readChain(answer: AcmeAnswer, wanted: WantedCertificate, now: number): Candidate {
  const [leaf, ...others] = certificatesIn(answer);
  if (leaf === undefined) throw unexpected(answer, expected, 'no certificate');
  checkLeaf(answer, leaf, wanted);
  const { chain, top } = chainFrom(leaf, others, now);
  const all = [...new Set([leaf, ...chain, top])];
  const stray = others.find((other) => !all.some((one) => isSameAuthority(one, other)));
  if (stray !== undefined) {
    throw unexpected(
      answer,
      expected,
      `certificates that do not form a chain: ${titleOf(stray)} issued none of the others`,
    );
  }
  return { leaf: leaf.raw, chain: chain.map(({ raw }) => raw), all };
}

/**
 * Each certificate once. The text must contain only certificates, so that the CA cannot smuggle in anything else
 * (§9.1).
 */
function certificatesIn(answer: AcmeAnswer): X509Certificate[] {
  const type = contentTypeOf(answer);
  if (type !== mediaType) {
    throw unexpected(answer, expected, type === '' ? 'a response without a content type' : type);
  }
  const text = answer.body.toString('utf8');
  const rest = text.split('-----END CERTIFICATE-----');
  const last = rest.pop() ?? '';
  const isWhole = (piece: string) => piece.lastIndexOf('-') === begin.length - 1 && piece.startsWith(begin);
  if (last.trim() !== '' || !rest.every((piece) => isWhole(piece.trimStart())))
    throw unexpected(answer, expected, 'text that is not a certificate');
  const certificates = blocksIn(answer, text).map(({ der }) => {
    const certificate = openCertificate(der);
    if (certificate === undefined)
      throw unexpected(answer, expected, 'a PEM block that is not a certificate');
    return certificate;
  });
  if (certificates.length > maxCertificates) {
    throw unexpected(answer, expected, `${certificates.length} certificates`);
  }
  return [...new Map(certificates.map((one) => [one.fingerprint256, one])).values()];
}

function blocksIn(answer: AcmeAnswer, text: string) {
  try {
    return readPemBlocks(text);
  } catch (cause) {
    throw unexpected(answer, expected, `a damaged one: ${cause instanceof Error ? cause.message : ''}`);
  }
}

function checkLeaf(
  answer: AcmeAnswer,
  leaf: X509Certificate,
  { publicKey, identifiers }: WantedCertificate,
): void {
  if (!isFor(leaf, publicKey)) {
    const { message, status } = unexpected(
      answer,
      'the ordered certificate',
      `one for another key: ${titleOf(leaf)}`,
    );
    throw new OtherKeyError('protocol', message, { status });
  }
  const names: readonly string[] = leaf.subjectAltName === undefined ? [] : factsOf(leaf).domains;
  const missing = identifiers.map(({ value }) => parseIdentifier(value) ?? value);
  const first = missing.find((name) => !names.includes(name));
  if (first !== undefined) {
    throw unexpected(
      answer,
      'the ordered certificate',
      `one for ${names.join(', ') || 'no names'}, without ${first}`,
    );
  }
}

function isFor(leaf: X509Certificate, publicKey: Buffer): boolean {
  try {
    return createPublicKey({ key: publicKey, format: 'der', type: 'spki' }).equals(leaf.publicKey);
  } catch {
    // A key type that OpenSSL does not know is not ours.
    return false;
  }
}

/** Cross-signed versions of a certificate may be included; they are dropped like a root. */
function isSameAuthority(one: X509Certificate, other: X509Certificate): boolean {
  return one === other || (one.subject === other.subject && one.publicKey.equals(other.publicKey));
}

function isIssuedAtTheTopBy({ all }: Candidate, name: string): boolean {
  return commonNamesIn(all.at(-1)?.issuer ?? '').includes(name);
}

/** Parses Node's form of a name: one part per line, or several joined with ` + `. */
function commonNamesIn(name: string | undefined): string[] {
  const parts = (name ?? '').split(/\n| \+ /);
  return parts.filter((part) => part.startsWith('CN=')).map((part) => part.slice('CN='.length));
}
