/** Describes what a file or a server presents: each object, the chain, what is missing, and what verifies it. */
import { createPublicKey, type KeyObject, type X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { Secret } from '../../base/secret.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { keyTypeOf } from '../key-pair.ts';
import { publicKeyPin } from '../public-key-pin.ts';
import { chainFrom, signsFor } from '../x509/certificate-chain.ts';
import {
  factsOf,
  isSelfSigned,
  issuerOf,
  printable,
  titleOf,
  validityWarnings,
} from '../x509/certificate-facts.ts';
import { publicRootOf } from '../x509/public-trust.ts';
import { intermediateMissing } from './bundle-refusals.ts';
import type { BundleSource } from './certificate-bundle.ts';
import { type InspectedObject, inspectedObjects } from './inspected-objects.ts';

/** An object as `vault inspect --json` prints it: `kind`, and the facts of that kind. */
export type ObjectReport = Readonly<Record<string, string | number | boolean | null | readonly string[]>> & {
  readonly kind: string;
};

export type ChainReport = {
  /** Subjects from the leaf upwards, with the root if the file has it. */
  readonly subjects: readonly string[];
  /** The issuer whose certificate the file lacks and no public root replaces; null if the chain is complete. */
  readonly missing: string | null;
  /** The root that verifies the chain: a public one, or one in the file. */
  readonly verified_by: string | null;
  readonly publicly_trusted: boolean;
};

export type Inspection = {
  readonly objects: readonly ObjectReport[];
  readonly chain: ChainReport | null;
  /** Whether the private key belongs to the leaf or the request; null without a key, or with nothing to match. */
  readonly key_matches: boolean | null;
  readonly problems: readonly string[];
};

export type InspectionInput = {
  readonly source: BundleSource;
  readonly password?: Secret<string> | undefined;
  /** The name that a server was asked for. */
  readonly host?: string | undefined;
  /** UTC milliseconds. */
  readonly now: number;
};

/**
 * Describes the file. No part of a private key is in the result. Throws as `inspectedObjects`; the file determines how
 * long this takes, so read untrusted files through `inspectApart`.
 */
export async function inspect({ source, password, host, now }: InspectionInput): Promise<Inspection> {
  const objects = await inspectedObjects({ ...source, name: printable(source.name) }, password);
  const certificates = objects.flatMap((one) => (one.kind === 'certificate' ? [one.x509] : []));
  const key = objects.find((one) => one.kind === 'private_key')?.key;
  const own = key && certificates.find((x509) => matches(key, x509));
  // A bundle of roots has no leaf.
  const isBundle = certificates.filter(isSelfSigned).length > 1;
  const leaf = own ?? certificates.find((x509) => !x509.ca) ?? (isBundle ? undefined : certificates[0]);
  const keyMatches = key === undefined ? null : matchOf(key, own, objects);
  const described = leaf && describeChain(leaf, certificates, now);
  return {
    objects: objects.map(reportOf),
    chain: described?.report ?? null,
    key_matches: keyMatches,
    problems: [
      ...(keyMatches === false && key !== undefined
        ? [`The private ${keyTypeOf(key)} key matches none of the certificates and requests.`]
        : []),
      ...(described?.problems ?? []),
      ...(leaf !== undefined && host !== undefined && !isFor(leaf, host)
        ? [`${titleOf(leaf)} is not valid for ${printable(host)}.`]
        : []),
      ...objects.flatMap((one) =>
        one.kind === 'certificate_request' && !one.isSignatureValid
          ? ['The signature of the certificate request is not valid.']
          : [],
      ),
    ],
  };
}

function describeChain(leaf: X509Certificate, certificates: readonly X509Certificate[], now: number) {
  const { chain, top } = chainFrom(leaf, certificates, now);
  const path = [...new Set([leaf, ...chain, top])];
  const publicRoot = publicRootOf(leaf, certificates, now);
  const isRooted = isSelfSigned(top);
  const missing = isRooted || publicRoot !== undefined ? null : issuerOf(top);
  const others = certificates.filter((one) => !path.includes(one));
  const places = path.map((one) => certificates.indexOf(one));
  const isOrdered = places.every((place, index) => index === 0 || place > (places[index - 1] ?? 0));
  const report: ChainReport = {
    subjects: path.map(titleOf),
    missing,
    verified_by: publicRoot ?? (isRooted ? titleOf(top) : null),
    publicly_trusted: publicRoot !== undefined,
  };
  const isLone = missing !== null && top === leaf;
  const problems = [
    ...path.flatMap((one) => validityWarnings(one, now)),
    ...(isOrdered ? [] : ['The certificates are not in the order leaf, issuer, its issuer.']),
    ...(isLone ? [intermediateMissing(leaf)] : []),
    ...(others.length === 0
      ? []
      : [
          `Not part of the chain: ${others.slice(0, 5).map(titleOf).join('; ')}${others.length > 5 ? ' …' : ''}.`,
        ]),
  ];
  return { report, problems };
}

function matchOf(
  key: KeyObject,
  own: X509Certificate | undefined,
  objects: readonly InspectedObject[],
): boolean | null {
  if (own !== undefined) return true;
  const pin = publicKeyPin({ publicKey: createPublicKey(key) });
  const requests = objects.filter((one) => one.kind === 'certificate_request');
  if (requests.some((request) => request.pin === pin)) return true;
  return requests.length > 0 || objects.some(({ kind }) => kind === 'certificate') ? false : null;
}

function matches(key: KeyObject, x509: X509Certificate): boolean {
  try {
    return x509.checkPrivateKey(key) && signsFor(key, x509);
  } catch {
    // OpenSSL does not know the key type of the certificate.
    return false;
  }
}

function isFor(leaf: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host)) !== undefined;
}

function reportOf(object: InspectedObject): ObjectReport {
  switch (object.kind) {
    case 'certificate': {
      const facts = factsOf(object.x509);
      return {
        kind: object.kind,
        subject: facts.subject,
        issuer: facts.issuer,
        serial: facts.serial,
        domains: facts.domains,
        key_type: facts.keyType,
        not_before: formatTimestamp(facts.notBefore),
        not_after: formatTimestamp(facts.notAfter),
        fingerprint_sha256: facts.fingerprintSha256,
        public_key_pin: pinOf(object.x509),
        is_ca: facts.isAuthority,
        is_self_signed: facts.isSelfSigned,
      };
    }
    case 'private_key': {
      const publicKey = createPublicKey(object.key);
      return {
        kind: object.kind,
        key_type: keyTypeOf(object.key),
        public_key_pin: publicKeyPin({ publicKey }),
      };
    }
    case 'certificate_request': {
      const { kind, subject, names: domains, keyType: key_type, pin: public_key_pin } = object;
      return {
        kind,
        subject,
        domains,
        key_type,
        public_key_pin,
        is_signature_valid: object.isSignatureValid,
      };
    }
    case 'revocation_list': {
      const { kind, issuer, thisUpdate: this_update, nextUpdate: next_update, revoked } = object;
      return { kind, issuer, this_update, next_update, revoked };
    }
    case 'other':
      return { kind: object.kind, label: object.label };
    case 'encrypted_private_key':
      return { kind: object.kind };
  }
}

function pinOf(x509: X509Certificate): string | null {
  try {
    return publicKeyPin(x509);
  } catch {
    // OpenSSL does not know the key type.
    return null;
  }
}
