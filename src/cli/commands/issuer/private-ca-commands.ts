/** What `vault issuer add` and `update` do for private CAs. */

import { keyTypes } from '../../../base/key-type.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { parseInput } from '../../../domain/inputs.ts';
import type { IssuerView } from '../../../domain/issuers/issuer-views.ts';
import { issuerNamed } from '../../../domain/issuers/issuers.ts';
import { addPrivateCa, changePrivateCa } from '../../../domain/issuers/private-issuers.ts';
import { createPrivateCaInput, updatePrivateCaInput } from '../../../domain/private-ca/private-ca-inputs.ts';
import { issuerPath, issuerThere } from '../../remote/issuers.ts';
import { onVault } from '../../runtime/with-vault.ts';
import type { commonOptions } from '../../settings/settings.ts';
import type { Arguments } from '../../terminal/arguments.ts';
import { Misuse } from '../../terminal/misuse.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { caOptions, type nameOption } from './issuer-options.ts';

export const typeOption = {
  type: {
    type: 'string',
    valueHint: 'TYPE',
    values: ['acme', 'local-ca'],
    description: 'acme, or local-ca for a private CA of this vault (default: acme)',
  },
} as const;

export const privateCaOptions = {
  'permit-domain': {
    type: 'string',
    valueHint: 'DOMAIN',
    multiple: true,
    description: 'a domain that the private CA may issue for, with all names below it (default: any name)',
  },
  'permit-ip': {
    type: 'string',
    valueHint: 'NETWORK',
    multiple: true,
    description: 'a network whose addresses the private CA may issue for',
  },
  lifetime: {
    type: 'string',
    valueHint: 'TIME',
    description: 'how long certificates of the private CA are valid that ask for no lifetime (default: 90d)',
  },
  'key-type': {
    type: 'string',
    valueHint: 'TYPE',
    values: [...keyTypes, 'none'],
    description: 'the type of new keys for certificates of the private CA that ask for none (default: ec256)',
  },
} as const;

export const newPrivateCaOptions = {
  'common-name': {
    type: 'string',
    valueHint: 'TEXT',
    description: 'the common name of the root of the private CA',
  },
  'path-length': {
    type: 'string',
    valueHint: 'NUMBER',
    description: 'how many CAs may follow the root of the private CA in a chain (default: 1)',
  },
} as const;

export const forceOption = {
  force: {
    type: 'boolean',
    description: 'change a private CA although renewals of certificates with other names then fail',
  },
} as const;

type Common = typeof nameOption & typeof privateCaOptions & typeof commonOptions;
type Change = Arguments<Common & typeof forceOption>;
type Addition = Arguments<Common & typeof newPrivateCaOptions>;

/** Whether `--type` says so. Throws Misuse for an unknown type. */
export function isPrivateType(type = 'acme'): boolean {
  if (type === 'acme' || type === 'local-ca') return type === 'local-ca';
  throw new Misuse(`unknown type ${JSON.stringify(type)}`, 'Use acme or local-ca.');
}

/** Throws Misuse if an option of the other type of issuer is given. */
export function refuseOptionsBut(type: 'acme' | 'local-ca', args: Readonly<Record<string, unknown>>): void {
  const others = type === 'acme' ? { ...privateCaOptions, ...newPrivateCaOptions } : caOptions;
  const option = Object.keys(others).find((name) => {
    const value = args[name];
    return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
  });
  if (option === undefined) return;
  throw new Misuse(
    `--${option} is an option of ${type === 'acme' ? 'private CAs' : 'ACME CAs'}`,
    type === 'acme' ? 'Add --type local-ca for a private CA.' : 'Remove it.',
  );
}

/** `vault issuer add --type local-ca`. */
export async function addPrivate(args: Addition, terminal: Terminal): Promise<void> {
  refuseOptionsBut('local-ca', args);
  const pathLength = args['path-length'];
  const wanted = {
    type: 'local-ca',
    name: args.name,
    ...settingsIn(args),
    ...(args['common-name'] !== undefined && { common_name: args['common-name'] }),
    // Other texts are refused as they stand.
    ...(pathLength !== undefined && {
      path_length: /^\d{1,3}$/.test(pathLength) ? Number(pathLength) : pathLength,
    }),
  };
  const input = parseInput(createPrivateCaInput, wanted);
  await onVault(
    args,
    terminal,
    'create',
    (vault) => addPrivateCa(vault, localCli, input),
    (remote) => remote.send<void>('POST', '/issuers', wanted),
  );
  terminal.stderr.write(
    `Added private CA ${input.name}. Its root is at /client/cas/${input.name}/ca.crt of the running vault.\n` +
      `  Try: vault certificate create --name NAME --domain DOMAIN --issuer ${input.name}\n`,
  );
}

/** Whether `vault issuer update` is about a private CA. */
export function changesPrivate(args: Change): boolean {
  return Object.keys(settingsIn(args)).length > 0 || args.force;
}

/** `vault issuer update` for a private CA. */
export async function updatePrivate(args: Change, terminal: Terminal): Promise<void> {
  refuseOptionsBut('local-ca', args);
  const named = Object.entries(settingsIn(args));
  if (named.length === 0) throw new Misuse('nothing to change', 'Try: vault issuer update --help');
  const cleared = named.map(([key, value]) => [key, String(value) === 'none' ? null : value]);
  const wanted = Object.fromEntries(cleared);
  const changes = parseInput(updatePrivateCaInput, wanted);
  const { name, force } = args;
  await onVault(
    args,
    terminal,
    'refuse',
    async (vault) => {
      refuseAcme(name, await issuerNamed(vault, name));
      await changePrivateCa(vault, localCli, name, changes, { force });
    },
    async (remote) => {
      refuseAcme(name, await issuerThere(remote, name));
      await remote.send('PATCH', issuerPath(name), { ...wanted, force });
    },
  );
  terminal.stderr.write(`Updated issuer ${name}. Certificates that it issued stay as they are.\n`);
}

function refuseAcme(name: string, issuer: { readonly type: string } | undefined): void {
  if (issuer?.type !== 'acme') return;
  throw new OperatorError(`issuer ${name} is an ACME CA and has no settings of a private CA`);
}

/** What a private CA permits, for the list. */
export function permittedNames(ca: IssuerView['private_ca']): string {
  if (ca === null) return '-';
  const names = [...ca.permit_domains, ...ca.permit_ips];
  return names.length === 0 ? 'any name' : names.join(', ');
}

/** What is lost with an issuer besides its configuration, for the question. */
export function lostWith({ type, eab_kid }: IssuerView): string {
  if (type === 'local-ca') return ', its keys and its revocation lists';
  return eab_kid === null ? '' : ' and its key for external account binding';
}

function settingsIn(args: Arguments<typeof privateCaOptions>) {
  const { 'permit-domain': domains, 'permit-ip': ips, lifetime, 'key-type': keyType } = args;
  return {
    ...(domains.length > 0 && { permit_domains: domains }),
    ...(ips.length > 0 && { permit_ips: ips }),
    ...(lifetime !== undefined && { lifetime }),
    ...(keyType !== undefined && { key_type: keyType }),
  };
}
