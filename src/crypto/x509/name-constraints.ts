/**
 * The extension that confines a CA to names (RFC 5280 §4.2.1.10). What is permitted neither as a domain nor as a
 * network is excluded, so that a CA for domains issues for no IP address, and a CA for networks for no domain.
 */
import { implicit, sequence, tagged } from '../der.ts';

/** A network as its first address and the length of its prefix in bits. */
export type PermittedNetwork = { readonly bytes: readonly number[]; readonly length: number };

/** Domains are permitted with all names below them. */
export type PermittedNames = {
  readonly domains: readonly string[];
  readonly networks: readonly PermittedNetwork[];
};

export const nameConstraintsOid = '2.5.29.30';

/** The numbers of GeneralName (§4.2.1.6). */
const email = 1;
const dns = 2;
const uri = 6;
const ip = 7;

/** All IPv4 and all IPv6 addresses. */
const anyAddress = [4, 16].map((size) => ({ bytes: Array<number>(size).fill(0), length: 0 }));

/**
 * A top-level domain that never exists (RFC 6761 §6.4): there is no other way to permit no name that all verifiers
 * know.
 */
const noDomain = ['invalid'];

/** The DER of the extension's value. */
export function nameConstraints({ domains, networks }: PermittedNames): Buffer {
  const hosts = domains.length === 0 ? noDomain : domains;
  const permitted = [
    ...hosts.map((domain) => named(dns, domain)),
    // A host alone stands for itself, with a dot in front for all hosts below it.
    ...hosts.flatMap((domain) => [named(email, domain), named(email, `.${domain}`)]),
    ...hosts.flatMap((domain) => [named(uri, domain), named(uri, `.${domain}`)]),
    ...networks.map(network),
  ];
  const excluded = networks.length === 0 ? anyAddress.map(network) : [];
  return sequence(tagged(0xa0, ...permitted), ...(excluded.length === 0 ? [] : [tagged(0xa1, ...excluded)]));
}

function named(type: number, text: string): Buffer {
  return sequence(implicit(type, Buffer.from(text, 'latin1')));
}

function network({ bytes, length }: PermittedNetwork): Buffer {
  const mask = bytes.map((_, at) => 0xff & (0xff << Math.min(8, Math.max(0, 8 * at + 8 - length))));
  return sequence(implicit(ip, Buffer.from([...bytes, ...mask])));
}
