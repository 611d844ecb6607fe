/** Adds, changes and removes endpoints, and records it. */
import { isIP } from 'node:net';
import { formatLifetime } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { Writer } from '../../db/database.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import {
  deleteEndpoint,
  type EndpointRow,
  findEndpointAt,
  hasEndpoints,
  insertEndpoint,
  type ListedEndpointRow,
  updateEndpoint,
} from '../../db/tables/endpoints.ts';
import type { StartTls } from '../../net/starttls.ts';
import type { KeyUse } from '../access/key-use.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { TimedContext } from '../contexts.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import {
  addressText,
  type CreateEndpointInput,
  defaultInterval,
  type UpdateEndpointInput,
  usualPort,
} from './endpoint-inputs.ts';
import { requireEndpoint } from './endpoints.ts';

/** The maximum number of endpoints of a vault. */
export const maxEndpoints = 10_000;

export type EndpointContext = TimedContext & { readonly keyUse: Pick<KeyUse, 'forgetEndpoint'> };

/** Whether the caller may do this to a certificate with this name; null for none. Throws `forbidden`. */
export type RequireFit = (certificate: string | null) => void | Promise<void>;

/** Nothing of an earlier check. */
const nothingSeen = {
  ...{ checked_at: null, failures: 0, error: null, version: null, fingerprint_sha256: null, serial: null },
  ...{ issuer: null, names: null, not_before: null, not_after: null, chain_complete: null, problem: null },
  ...{ tls_version: null, ocsp_stapled: null, changed_at: null },
} as const;

/**
 * Adds an endpoint, which is due immediately, and returns its id. Throws `certificate_not_found`, `endpoint_exists` and
 * `too_many_endpoints`.
 */
export async function addEndpoint(
  { db, world }: TimedContext,
  actor: Actor,
  input: CreateEndpointInput,
): Promise<number> {
  return db.write(async (writer) => {
    const now = world.now();
    const certificate = await certificateFor(writer, input.certificate ?? null);
    const starttls = input.starttls ?? null;
    const { host, port = usualPort(starttls) } = input.address;
    const server_name = input.server_name ?? usualServerName(host, certificate);
    const wanted = { host, port, server_name };
    await refuseExisting(writer, wanted);
    if (await hasEndpoints(writer, maxEndpoints)) {
      throw new Problem('too_many_endpoints', {
        detail: `The vault has ${maxEndpoints} endpoints, the maximum.`,
      });
    }
    const row = {
      ...wanted,
      certificate_id: certificate?.id ?? null,
      starttls,
      ...trustColumns(input, { trust: 'auto', ca_pem: null }),
      check_every: input.interval ?? defaultInterval,
      created_at: now,
      next_check_at: now,
    };
    const id = await insertEndpoint(writer, row);
    const detail = { id, ...settingsOf({ ...row, certificate: certificate?.name ?? null }) };
    record(writer, { actor, action: 'endpoint.create', resource: resourceOf(row), detail }, now);
    return id;
  });
}

/**
 * Changes an endpoint. If other things are checked from now on, what was seen is forgotten, and the endpoint is due
 * immediately. `requireFit` gets the certificate before and after. Throws `endpoint_not_found`, `endpoint_exists` and
 * `certificate_not_found`.
 */
export async function changeEndpoint(
  { db, world, keyUse }: EndpointContext,
  actor: Actor,
  id: number,
  input: UpdateEndpointInput,
  requireFit: RequireFit,
): Promise<void> {
  await db.write(async (writer) => {
    const now = world.now();
    const before = await requireEndpoint(writer, id);
    await requireFit(before.certificate);
    const certificate = await certificateFor(
      writer,
      input.certificate === undefined ? before.certificate : input.certificate,
    );
    await requireFit(certificate?.name ?? null);
    const starttls = input.starttls === undefined ? before.starttls : input.starttls;
    const { host, port = usualPort(starttls as StartTls | null) } = input.address ?? before;
    const server_name =
      input.server_name === undefined
        ? input.address === undefined
          ? before.server_name
          : usualServerName(host, certificate)
        : (input.server_name ?? usualServerName(host, certificate));
    const after = {
      ...{ host, port, server_name, starttls, certificate_id: certificate?.id ?? null },
      ...trustColumns(input, before),
      check_every: input.interval ?? before.check_every,
    };
    const previous = settingsOf(before);
    const settings = settingsOf({ ...after, certificate: certificate?.name ?? null });
    const changed = differing(previous, settings);
    const isSameBundle = before.ca_pem === after.ca_pem;
    if (Object.keys(changed).length === 0 && isSameBundle) return;
    const isElsewhere = host !== before.host || port !== before.port || server_name !== before.server_name;
    if (isElsewhere) await refuseExisting(writer, after);
    const isOther = Object.keys(changed).some((key) => key !== 'interval') || !isSameBundle;
    await updateEndpoint(writer, id, {
      ...after,
      ...(isOther && { ...nothingSeen, revision: before.revision + 1 }),
      next_check_at: isOther ? now : Math.min(before.next_check_at, now + after.check_every),
    });
    const detail = { id, ...differing(settings, previous), previous: changed };
    record(writer, { actor, action: 'endpoint.update', resource: resourceOf(after), detail }, now);
  });
  keyUse.forgetEndpoint(id);
}

/** Removes an endpoint. Throws `endpoint_not_found`. */
export async function removeEndpoint(
  { db, world, keyUse }: EndpointContext,
  actor: Actor,
  id: number,
  requireFit: RequireFit,
): Promise<void> {
  await db.write(async (writer) => {
    const row = await requireEndpoint(writer, id);
    await requireFit(row.certificate);
    await deleteEndpoint(writer, id);
    const detail = { id, ...settingsOf(row) };
    record(writer, { actor, action: 'endpoint.delete', resource: resourceOf(row), detail }, world.now());
  });
  keyUse.forgetEndpoint(id);
}

/** The resource of events about it. */
export function resourceOf(row: Pick<EndpointRow, 'host' | 'port'>): string {
  return `endpoint:${addressText(row)}`;
}

async function certificateFor(writer: Writer, name: string | null): Promise<CertificateRow | undefined> {
  return name === null ? undefined : requireCertificate(writer, name);
}

async function refuseExisting(
  writer: Writer,
  wanted: Pick<EndpointRow, 'host' | 'port' | 'server_name'>,
): Promise<void> {
  if ((await findEndpointAt(writer, wanted)) === undefined) return;
  const name =
    wanted.server_name === '' ? 'without a server name' : `with the server name ${wanted.server_name}`;
  throw new Problem('endpoint_exists', {
    detail: `There is already an endpoint ${addressText(wanted)} ${name}.`,
    hint: 'Try: vault endpoint list',
  });
}

/** The host if the certificate covers it, or without a certificate; otherwise the first name of the certificate. */
function usualServerName(host: string, certificate: CertificateRow | undefined): string {
  const names = certificate === undefined ? [] : parseJson(certificate.domains);
  const isName = isIP(host) === 0;
  if (isName && (names.length === 0 || names.some((name) => covers(name, host)))) return host;
  const first = names.find((name) => isIP(name) === 0 && !name.startsWith('*'));
  return first ?? (isName ? host : '');
}

function covers(name: string, host: string): boolean {
  return name === host || (name.startsWith('*.') && host.slice(host.indexOf('.')) === name.slice(1));
}

function trustColumns(
  { trust, ca_pem }: Pick<UpdateEndpointInput, 'trust' | 'ca_pem'>,
  before: Pick<EndpointRow, 'trust' | 'ca_pem'>,
): Pick<EndpointRow, 'trust' | 'ca_pem'> {
  if (typeof ca_pem === 'string') return { trust: 'bundle', ca_pem };
  if (trust !== undefined) return { trust, ca_pem: null };
  return ca_pem === null ? { trust: 'auto', ca_pem } : { trust: before.trust, ca_pem: before.ca_pem };
}

type Settings = Pick<
  ListedEndpointRow,
  'host' | 'port' | 'certificate' | 'server_name' | 'starttls' | 'trust' | 'check_every'
>;

/** What events show. */
function settingsOf(row: Settings): Readonly<Record<string, string | null>> {
  const { certificate, server_name, starttls, trust } = row;
  const interval = formatLifetime(row.check_every);
  return { address: addressText(row), certificate, server_name, starttls, trust, interval };
}

/** The settings of `some` that `others` has with another value. */
function differing(
  some: Readonly<Record<string, string | null>>,
  others: Readonly<Record<string, string | null>>,
): Record<string, string | null> {
  return Object.fromEntries(Object.entries(some).filter(([key, value]) => others[key] !== value));
}
