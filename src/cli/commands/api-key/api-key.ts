/** `vault api-key …`: manages API keys directly in the database, without HTTP. */
import { roles } from '../../../base/role.ts';
import type { Secret } from '../../../base/secret.ts';
import { rotateApiKeyInput } from '../../../domain/access/api-key-inputs.ts';
import { apiKeyIdFrom } from '../../../domain/access/api-key-names.ts';
import { rotateApiKey } from '../../../domain/access/api-key-rotation.ts';
import { type ApiKeyView, allApiKeys } from '../../../domain/access/api-key-views.ts';
import { createApiKey, deleteApiKey, revokeApiKey } from '../../../domain/access/api-keys.ts';
import { scopesOfRole } from '../../../domain/access/identity.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { futureMoment } from '../../../domain/input-strings.ts';
import { createApiKeyInput, parseInput } from '../../../domain/inputs.ts';
import type { Vault } from '../../../domain/vault.ts';
import type { RemoteVault } from '../../remote/remote-vault.ts';
import { command, commandGroup, type Example } from '../../runtime/command.ts';
import { confirmLoss, yesOption } from '../../runtime/confirmation.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { listCommand } from './api-key-list.ts';
import { idOption, rightsOptions } from './api-key-options.ts';
import { expiryOf, keysThere, rawOf, rotateThere } from './api-key-there.ts';
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
      does: 'Create a key for all certificates with a label, including those that get it later',
      line: 'vault api-key create --name web-team --scope certificates:read --certificate-label team=web',
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
    const wanted = {
      name: args.name,
      ...rightsFrom(args),
      allowed_networks: args['allow-ip'],
      profiles: args.profile,
      certificate_labels: args['certificate-label'],
      reach: args.reach,
      labels: args.label,
      client_certificate: args['client-certificate'] ?? null,
      ...(args['expires-at'] !== undefined && { expires_at: args['expires-at'] }),
    };
    const input = parseInput(createApiKeyInput.safeExtend({ expires_at }), wanted);
    const { raw } = await onVault(
      args,
      terminal,
      'create',
      (vault) => createApiKey(vault, localCli, input),
      async (remote) => rawOf(await remote.send('POST', '/api-keys', { ...wanted, ...expiryOf(input) })),
    );
    printOnce(raw, terminal);
  },
});

/** Scopes and certificates as given; a key with a role has by default those of the role. */
function rightsFrom({ scope, certificate, role, 'certificate-label': labels }: Rights) {
  const isUnlisted = certificate.length === 0;
  if (role === undefined) {
    const missing =
      scope.length === 0 ? '--scope' : isUnlisted && labels.length === 0 ? '--certificate' : undefined;
    if (missing !== undefined) throw new Misuse(`${missing} is missing`, 'Try: vault api-key create --help');
    return { scopes: scope, certificates: certificate };
  }
  // An unknown role is refused by its own name, not for the scopes that it lacks.
  const known = roles.find((one) => one === role) ?? 'viewer';
  return {
    role,
    scopes: scope.length === 0 ? scopesOfRole(known) : scope,
    certificates: isUnlisted && labels.length === 0 ? ['*'] : certificate,
  };
}

type Rights = {
  readonly scope: readonly string[];
  readonly certificate: readonly string[];
  readonly 'certificate-label': readonly string[];
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
    const { name, raw, previousExpiresAt, endedEarlier } = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) =>
        rotateApiKey(vault, localCli, await apiKeyIdFrom(allApiKeys(vault), args.id, 'not revoked'), input),
      (remote) => rotateThere(remote, args.id, args.overlap),
    );
    printOnce(raw, terminal);
    terminal.stderr.write(
      previousExpiresAt === null
        ? `The old key of ${name} is no longer valid.\n`
        : `The old key of ${name} is valid until ${previousExpiresAt}.\n`,
    );
    if (endedEarlier) terminal.stderr.write('The key before the old one is no longer valid.\n');
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
  {
    here: (vault, id) => revokeApiKey(vault, localCli, id),
    there: (remote, id) => remote.send('POST', `/api-keys/${id}/revoke`),
  },
);

const remove = byId(
  'api-key delete',
  {
    description: 'Delete a revoked API key',
    examples: [{ does: 'Delete a revoked key', line: 'vault api-key delete --id 1' }],
  },
  'Deleted',
  'revoked',
  {
    here: (vault, id) => deleteApiKey(vault, localCli, id),
    there: (remote, id) => remote.send('DELETE', `/api-keys/${id}`),
  },
  (id) => `Delete API key ${id}? The audit log keeps its events.`,
);

export const apiKeyCommands = commandGroup(
  'api-key',
  'Create, change, rotate, list, revoke and delete API keys',
  {
    create,
    list: listCommand,
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
  act: {
    readonly here: (vault: Vault, id: number) => Promise<void>;
    readonly there: (remote: RemoteVault, id: number) => Promise<void>;
  },
  question?: (id: number) => string,
) {
  return command({
    name,
    ...about,
    options: question === undefined ? idOption : { ...idOption, ...yesOption },
    run: async (args, terminal) => {
      const confirmed = async (pages: AsyncIterable<readonly ApiKeyView[]>) => {
        const id = await apiKeyIdFrom(pages, args.id, which);
        // A revoked key opens nothing, so scripts need no --yes.
        const loss = question && { question: question(id), isPermanent: false };
        if (loss !== undefined)
          await confirmLoss(terminal, { yes: 'yes' in args && args.yes === true }, loss);
        return id;
      };
      const id = await onVault(
        args,
        terminal,
        'refuse',
        async (vault) => {
          const its = await confirmed(allApiKeys(vault));
          await act.here(vault, its);
          return its;
        },
        async (remote) => {
          const its = await confirmed(keysThere(remote));
          await act.there(remote, its);
          return its;
        },
      );
      terminal.stderr.write(`${done} API key ${id}.\n`);
    },
  });
}
