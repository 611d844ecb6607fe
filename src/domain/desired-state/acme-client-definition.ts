/** ACME clients as the document of `vault apply` has them: their rights, never their keys. */
import { parseJson, parseJsonOr } from '../../base/json.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Reader } from '../../db/database.ts';
import { type ListedAcmeClientRow, listAcmeClientRows } from '../../db/tables/acme-server/acme-clients.ts';
import type { CreateAcmeClientInput } from '../acme-server/clients/acme-client-inputs.ts';
import { gatewayRate } from '../acme-server/clients/acme-clients.ts';
import type { NamePattern } from '../acme-server/clients/name-patterns.ts';
import { localCaName } from '../private-ca/local-ca.ts';
import type { Definition } from './definition.ts';
import { isPrivateCa } from './issuer-settings.ts';

type Issuers = Parameters<typeof isPrivateCa>[0];

export type HeldAcmeClient = {
  readonly definition: Definition;
  /** It has expired or is revoked, and so is as good as gone. */
  readonly isOver: boolean;
  readonly isRevoked: boolean;
};

/** The clients of the vault by name, or those with these names; revoked ones too, because their names are taken. */
export async function acmeClientsOf(
  reader: Reader,
  now: number,
  publicIssuers: ReadonlySet<string>,
  names?: readonly string[],
): Promise<Map<string, HeldAcmeClient>> {
  const rows = await listAcmeClientRows(reader, names);
  return new Map(
    rows.map((row) => {
      const isRevoked = row.revoked_at !== null;
      const isOver = isRevoked || (row.expires_at !== null && row.expires_at <= now);
      const isPublic = (name: string) => publicIssuers.has(name);
      return [row.name, { definition: definitionOf(inputOf(row), isPublic), isOver, isRevoked }];
    }),
  );
}

/** Patterns were parsed before they were stored. */
function inputOf(row: ListedAcmeClientRow): Omit<CreateAcmeClientInput, 'name'> {
  return {
    domains: parseJson(row.domains) as NamePattern[],
    issuers: parseJson(row.issuers),
    profiles: parseJsonOr(row.profiles, []),
    allowed_networks: parseJson(row.allowed_networks),
    validation: parseJson(row.validation),
    rate: row.rate,
    expires_at: row.expires_at ?? undefined,
    labels: parseJsonOr(row.labels, []),
  };
}

/** The definition that the document wants. */
export function wantedAcmeClient(issuers: Issuers, input: CreateAcmeClientInput): Definition {
  return definitionOf(input, (name) => !isPrivateCa(issuers, name));
}

/** What differs from the defaults; the default rate depends on the issuers. */
function definitionOf(
  input: Omit<CreateAcmeClientInput, 'name'>,
  isPublic: (issuer: string) => boolean,
): Definition {
  const { domains, issuers, profiles, allowed_networks, validation, expires_at, labels } = input;
  const defaultRate = issuers.some(isPublic) ? gatewayRate : null;
  const rate = input.rate === undefined ? defaultRate : input.rate;
  const isUsualIssuer = issuers.length === 1 && issuers[0] === localCaName;
  const listed = (values: readonly string[]) => (values.length === 0 ? undefined : values);
  return {
    domains,
    issuers: isUsualIssuer ? undefined : issuers,
    profiles: listed(profiles),
    allowed_networks: listed(allowed_networks),
    validation: listed(validation),
    rate: rate === defaultRate ? undefined : (rate ?? 'none'),
    expires_at: expires_at === undefined ? undefined : formatTimestamp(expires_at),
    labels: listed(labels),
  };
}
