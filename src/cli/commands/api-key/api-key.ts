/** `vault api-key …`: manages API keys directly in the database, without HTTP. */
import { roles } from '../../../base/role.ts';
import type { Secret } from '../../../base/secret.ts';
import { rotateApiKeyInput } from '../../../domain/access/api-key-inputs.ts';
import { apiKeyIdFrom } from '../../../domain/access/api-key-names.ts';
import { rotateApiKey } from '../../../domain/access/api-key-rotation.ts';
import { allApiKeys, createApiKey, deleteApiKey, revokeApiKey } from '../../../domain/access/api-keys.ts';
import { scopesOfRole } from '../../../domain/access/identity.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { futureMoment } from '../../../domain/input-strings.ts';
import { createApiKeyInput, parseInput } from '../../../domain/inputs.ts';
import type { Vault } from '../../../domain/vault.ts';
import { command, commandGroup, type Example } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { withVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonPieces, printPieces } from '../../terminal/output.ts';
import { printList } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { idOption, rightsOptions } from './api-key-options.ts';
import { updateCommand } from './api-key-update.ts';

const create = command({
  name: 'api-key create',
  description: 'Create an API key and print it once',
  examples: [
    {
      does: 'Create a key for a server that downloads one certificate and its private key',
      line: 'vault api-key create --name www --scope certificates:read --scope private_keys:read --certificate web',
    },
    {
      does: 'Create a key for monitoring: all certificates, no private keys, one network, until 2030',
      line: 'vault api-key create --name monitoring --scope certificates:read --certificate "*" --allow-ip 192.0.2.0/24 --expires-at 2030-01-31',
    },
    {
      does: 'Create a key that works only together with the client certificate billing',
      line: 'vault api-key create --name billing --scope certificates:read --scope private_keys:read --certificate billing --client-certificate billing',
    },
  ],
  options: {
    name: {
      type: 'string',
      valueHint: 'NAME',
      required: true,
      description: 'a name that says what the key is for',
    },
    ...rightsOptions,
    scope: {
      ...rightsOptions.scope,
      description: `${rightsOptions.scope.description} (with --role, by default those of the role)`,
    },
    certificate: {
      ...rightsOptions.certificate,
      description: `${rightsOptions.certificate.description} (the default with --role)`,
    },
  },
  run: async (args, terminal) => {
    const expires_at = futureMoment(terminal.world.now()).optional();
    const input = parseInput(createApiKeyInput.extend({ expires_at }), {
      name: args.name,
      ...rightsFrom(args),
      allowed_networks: args['allow-ip'],
      profiles: args.profile,
      client_certificate: args['client-certificate'] ?? null,
      ...(args['expires-at'] !== undefined && { expires_at: args['expires-at'] }),
    });
    await withVault(args, terminal, 'create', async (vault) => {
      const { raw } = await createApiKey(vault, localCli, input);
      printOnce(raw, terminal);
    });
  },
});

/** Scopes and certificates as given; a key with a role has by default those of the role. */
function rightsFrom({ scope, certificate, role }: Rights) {
  if (role === undefined) {
    const missing = scope.length === 0 ? '--scope' : certificate.length === 0 ? '--certificate' : undefined;
    if (missing !== undefined) throw new Misuse(`${missing} is missing`, 'Try: vault api-key create --help');
    return { scopes: scope, certificates: certificate };
  }
  // An unknown role is refused by its own name, not for the scopes that it lacks.
  const known = roles.find((one) => one === role) ?? 'viewer';
  return {
    role,
    scopes: scope.length === 0 ? scopesOfRole(known) : scope,
    certificates: certificate.length === 0 ? ['*'] : certificate,
  };
}

type Rights = {
  readonly scope: readonly string[];
  readonly certificate: readonly string[];
  readonly role: string | undefined;
};

/** Prints a raw key, and only it, on standard output. */
function printOnce(raw: Secret<string>, terminal: Terminal): void {
  terminal.stdout.write(`${raw.expose()}\n`);
  terminal.stderr.write('The key is not shown again. Store it where only its client can read it.\n');
}

const rotate = command({
  name: 'api-key rotate',
  description: 'Replace the secret of an API key and print it once',
  examples: [
    { does: 'Replace a key; the old one stays valid for 7 days', line: 'vault api-key rotate www' },
    {
      does: 'Replace a stolen key; the old one ends immediately',
      line: 'vault api-key rotate www --overlap 0',
    },
  ],
  options: {
    ...idOption,
    overlap: {
      type: 'string',
      valueHint: 'TIME',
      description: 'how long the old key stays valid, such as 24h; 0 ends it immediately (default: 7d)',
    },
  },
  run: async (args, terminal) => {
    const input = parseInput(rotateApiKeyInput, { overlap: args.overlap });
    await withVault(args, terminal, 'refuse', async (vault) => {
      const id = await apiKeyIdFrom(vault, args.id, 'not revoked');
      const { name, raw, previousExpiresAt, endedEarlier } = await rotateApiKey(vault, localCli, id, input);
      printOnce(raw, terminal);
      terminal.stderr.write(
        previousExpiresAt === null
          ? `The old key of ${name} is no longer valid.\n`
          : `The old key of ${name} is valid until ${previousExpiresAt}.\n`,
      );
      if (endedEarlier) terminal.stderr.write('The key before the old one is no longer valid.\n');
    });
  },
});

const list = command({
  name: 'api-key list',
  description: 'List API keys, as JSON or as a table',
  examples: [
    { does: 'List all keys as JSON, without their secrets', line: 'vault api-key list' },
    { does: 'List them as a table', line: 'vault api-key list --table' },
  ],
  options: {
    json: { type: 'boolean', description: 'print JSON, which is the default' },
    table: { type: 'boolean', description: 'print a table' },
  },
  run: async (args, terminal) => {
    if (args.json && args.table) {
      throw new Misuse('--json and --table exclude each other', 'Use one of them.');
    }
    await withVault(args, terminal, 'refuse', async (vault) => {
      const pages = allApiKeys(vault);
      if (!args.table) return printPieces(jsonPieces(pages), terminal.stdout);
      printList(terminal, { json: false }, (await Array.fromAsync(pages)).flat(), {
        none: 'No API keys yet.\n  Try: vault api-key create --help',
        columns: [
          'ID',
          { title: 'NAME', holds: 'name' },
          'STATE',
          'ROLE',
          { title: 'SCOPES', holds: 'list' },
          { title: 'CERTIFICATES', holds: 'list' },
          { title: 'PROFILES', holds: 'list' },
          { title: 'CLIENT CERTIFICATE', holds: 'name' },
          { title: 'EXPIRES', holds: 'time' },
          { title: 'LAST USED', holds: 'time' },
        ],
        row: (key) => [
          ...[String(key.id), key.name, key.state, key.role ?? '-'],
          ...[key.scopes, key.certificates.length === 0 ? '-' : key.certificates],
          key.profiles.length === 0 ? 'any' : key.profiles,
          key.client_certificate ?? '-',
          ...[key.expires_at ?? 'never', key.last_used_at ?? 'never'],
        ],
      });
    });
  },
});

const revoke = byId(
  'api-key revoke',
  {
    description: 'Revoke an API key immediately',
    examples: [
      { does: 'Revoke a key; its next request is refused', line: 'vault api-key revoke www' },
      { does: 'Revoke a key whose name is not unique', line: 'vault api-key revoke --id 1' },
    ],
  },
  'Revoked',
  'not revoked',
  (vault, id) => revokeApiKey(vault, localCli, id),
);

const remove = byId(
  'api-key delete',
  {
    description: 'Delete a revoked API key',
    examples: [{ does: 'Delete a revoked key', line: 'vault api-key delete --id 1' }],
  },
  'Deleted',
  'revoked',
  (vault, id) => deleteApiKey(vault, localCli, id),
  (id) => `Delete API key ${id}? The audit log keeps its events.`,
);

export const apiKeyCommands = commandGroup(
  'api-key',
  'Create, change, rotate, list, revoke and delete API keys',
  {
    create,
    list,
    update: updateCommand,
    rotate,
    revoke,
    delete: remove,
  },
);

function byId(
  name: string,
  about: { readonly description: string; readonly examples: readonly [Example, ...Example[]] },
  done: string,
  which: 'revoked' | 'not revoked',
  act: (vault: Vault, id: number) => Promise<void>,
  question?: (id: number) => string,
) {
  return command({
    name,
    ...about,
    options: question === undefined ? idOption : { ...idOption, ...yesOption },
    run: (args, terminal) =>
      withVault(args, terminal, 'refuse', async (vault) => {
        const id = await apiKeyIdFrom(vault, args.id, which);
        // A revoked key opens nothing, so scripts need no --yes.
        const loss = question && { question: question(id), isPermanent: false };
        if (loss !== undefined)
          await confirmLoss(terminal, { yes: 'yes' in args && args.yes === true }, loss);
        await act(vault, id);
        terminal.stderr.write(`${done} API key ${id}.\n`);
      }),
  });
}
