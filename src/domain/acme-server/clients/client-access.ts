/** What an ACME client may do: whether it is let in at a directory, and which names and profiles it may order. */
import type { ChallengeType } from '../../../base/challenge-type.ts';
import type { Identifier } from '../../../base/identifier.ts';
import { requireIntegrity } from '../../../base/integrity.ts';
import { parseJson } from '../../../base/json.ts';
import type { Secret } from '../../../base/secret.ts';
import { formatTimestamp } from '../../../base/timestamp.ts';
import type { Recorded } from '../../../db/audit/row-records.ts';
import { acmeClientFits } from '../../../db/audit/row-tags.ts';
import {
  type AcmeClientRow,
  findAcmeClientByKid,
  findAcmeClientRow,
} from '../../../db/tables/acme-server/acme-clients.ts';
import { type IpNetwork, isInside, parseIpAddress, parseIpNetwork } from '../../../net/ip-network.ts';
import { type Confinement, confinementIn } from '../../access/profile-confinement.ts';
import type { DatabaseContext, KeyringContext, LogContext } from '../../contexts.ts';
import { acmeClientKeyOwner, openFor } from '../../sealed-secrets.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { NamePatterns } from './name-patterns.ts';

/** An ACME client of the vault as its row, which carries a valid tag, says it. */
export type AcmeClient = {
  readonly id: number;
  readonly name: string;
  readonly domains: NamePatterns;
  readonly issuers: readonly string[];
  /** The profiles (`issuer/profile`) that it is confined to. */
  readonly profiles: Confinement;
  readonly networks: 'any' | readonly IpNetwork[];
  /** The challenges that validate its names; none where the binding is the proof. */
  readonly validation: readonly ChallengeType[];
  /** New orders per hour; undefined for no limit. */
  readonly rate: number | undefined;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
};

/** The client of this id; undefined if there is none, or if its row was modified outside the vault. */
export async function findAcmeClient(
  vault: DatabaseContext & LogContext,
  id: number,
): Promise<AcmeClient | undefined> {
  const row = await findAcmeClientRow(vault.db.reader, id);
  return row !== undefined && isUnmodified(vault, row) ? clientOf(row) : undefined;
}

/** The client whose current key has this identifier, and that key; undefined as for `findAcmeClient`. */
export async function findClientByKid(
  vault: DatabaseContext & KeyringContext & LogContext,
  kid: string,
): Promise<{ readonly client: AcmeClient; readonly hmacKey: Secret } | undefined> {
  const row = await findAcmeClientByKid(vault.db.reader, kid);
  if (row === undefined || !isUnmodified(vault, row)) return undefined;
  return {
    client: clientOf(row),
    hmacKey: openFor(vault, acmeClientKeyOwner(row.id), row.sealed_hmac_key),
  };
}

function isUnmodified({ db, log }: DatabaseContext & LogContext, row: AcmeClientRow & Recorded): boolean {
  if (acmeClientFits(requireIntegrity(db), row)) return true;
  log.error({ acme_client: row.id }, 'ACME client refused: its database row was modified outside the vault');
  return false;
}

function clientOf(row: AcmeClientRow): AcmeClient {
  const networks = parseJson(row.allowed_networks);
  return {
    id: row.id,
    name: row.name,
    domains: new NamePatterns(parseJson(row.domains)),
    issuers: parseJson(row.issuers),
    profiles: confinementIn(row.profiles),
    // Unreadable networks are dropped; that never widens the list to `any`.
    networks:
      networks.length === 0 ? 'any' : networks.map(parseIpNetwork).filter((network) => network !== undefined),
    validation: parseJson(row.validation),
    rate: row.rate ?? undefined,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
  };
}

/** Where a request of a client comes from and what it wants. */
export type ClientRequest = {
  /** The address of the program; undefined if it is unknown, as on a Unix socket. */
  readonly ip: string | undefined;
  /** The name of the issuer whose directory it uses. */
  readonly issuer: string;
  /** UTC milliseconds. */
  readonly now: number;
};

/** Why the client may do nothing at this directory, from there and now; undefined if it may. */
export function refusalOfClient(
  client: AcmeClient,
  { ip, issuer, now }: ClientRequest,
): AcmeProblem | undefined {
  const { id, expiresAt, revokedAt } = client;
  const who = subjectOf(client);
  if (revokedAt !== null) {
    return unauthorized(`${who} was revoked. Create a new one with "vault acme-client create".`);
  }
  if (expiresAt !== null && expiresAt <= now) {
    return unauthorized(
      `${who} expired at ${formatTimestamp(expiresAt)}. Extend it with "vault acme-client update ${id} --expires-at TIME".`,
    );
  }
  if (!isFromNetworks(client, ip)) {
    return unauthorized(
      `${who} may not be used from ${ip ?? 'an unknown address'}. Its networks are set with "vault acme-client update ${id} --allow-ip CIDR".`,
    );
  }
  if (client.issuers.includes(issuer)) return undefined;
  return unauthorized(
    `${who} may not use issuer ${issuer}, only ${client.issuers.join(', ')}. Its issuers are set with "vault acme-client update ${id} --issuer NAME".`,
  );
}

function isFromNetworks({ networks }: AcmeClient, ip: string | undefined): boolean {
  if (networks === 'any') return true;
  const address = ip === undefined ? undefined : parseIpAddress(ip);
  return address !== undefined && isInside(address, networks);
}

/**
 * Why the client may not order these names, with a subproblem for each that none of its patterns permits, or not with
 * this profile (`issuer/profile`); undefined if it may.
 */
export function refusalOfNames(
  client: AcmeClient,
  identifiers: readonly Identifier[],
  profile?: string,
): AcmeProblem | undefined {
  const forbidden = identifiers.filter((identifier) => !client.domains.permits(identifier));
  if (forbidden.length > 0) return rejected(client, forbidden);
  if (profile === undefined || client.profiles === 'any' || client.profiles.has(profile)) return undefined;
  return new AcmeProblem(
    'invalidProfile',
    `${subjectOf(client)} may not use profile ${profile}, only ${[...client.profiles].join(', ')}. Its profiles are set with "vault acme-client update ${client.id} --profile ISSUER/NAME".`,
  );
}

/**
 * The profile that an order gets: the one it names, or the only one of this issuer that the client is confined to.
 * Throws `invalidProfile` for a profile that the client may not use, and where several are left to choose from or none.
 */
export function profileForOrder(
  client: AcmeClient,
  issuer: string,
  requested: string | undefined,
): string | undefined {
  const { profiles } = client;
  if (profiles === 'any') return requested;
  const prefix = `${issuer}/`;
  const own = [...profiles]
    .filter((known) => known.startsWith(prefix))
    .map((known) => known.slice(prefix.length));
  const [only, ...others] = own;
  if (requested !== undefined && own.includes(requested)) return requested;
  if (requested === undefined && only !== undefined && others.length === 0) return only;
  const may =
    own.length === 0 ? `no profile of issuer ${issuer}` : `only ${own.join(', ')} of issuer ${issuer}`;
  const wanted = requested === undefined ? 'The order names no profile' : `Profile ${requested} is refused`;
  throw new AcmeProblem('invalidProfile', `${wanted}: ${subjectOf(client)} may use ${may}.`);
}

/** Patterns that a message lists. */
const maxPatterns = 10;

function rejected(client: AcmeClient, forbidden: readonly Identifier[]): AcmeProblem {
  const { texts } = client.domains;
  const more = texts.length - maxPatterns;
  const permitted = `${texts.slice(0, maxPatterns).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const [first] = forbidden;
  return new AcmeProblem(
    'rejectedIdentifier',
    `${subjectOf(client)} may not order ${forbidden.slice(0, maxPatterns).join(', ')}${forbidden.length > maxPatterns ? ' …' : ''}; it may order ${permitted}. Its names are set with "vault acme-client update ${client.id} --domain PATTERN".`,
    {
      ...(forbidden.length === 1 && { identifier: first }),
      subproblems: forbidden.map((identifier) => ({
        type: 'rejectedIdentifier',
        detail: `No pattern of ${subjectOf(client)} permits ${identifier}.`,
        identifier,
      })),
    },
  );
}

/** The client in sentences. */
function subjectOf({ id, name }: AcmeClient): string {
  return `ACME client ${id} (${name})`;
}

function unauthorized(detail: string): AcmeProblem {
  return new AcmeProblem('unauthorized', detail);
}
