/** `vault api-key …`: keys are made, listed, revoked and deleted directly in the database, without HTTP. */
import { scopes } from '../../base/scope.ts';
import { allApiKeys, createApiKey, deleteApiKey, revokeApiKey } from '../../domain/access/api-keys.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { createApiKeyInput, parseInput } from '../../domain/inputs.ts';
import type { Vault } from '../../domain/vault.ts';
import { command, commandGroup, type Example } from '../runtime/command.ts';
import { withVault } from '../runtime/with-vault.ts';
import { Misuse } from '../terminal/misuse.ts';
import { jsonPieces, printPieces } from '../terminal/output.ts';

const idOption = {
  id: {
    type: 'string',
    valueHint: 'N',
    required: true,
    description: 'the id that "vault api-key list" shows',
  },
} as const;

const create = command({
  name: 'api-key create',
  description: 'make an API key and print it, once',
  examples: [
    {
      does: 'For a server that fetches one certificate with its key',
      line: 'vault api-key create --name www --scope certificates:read --scope private_keys:read --certificate web',
    },
    {
      does: 'For monitoring: every certificate, no private keys, one network, one year',
      line: 'vault api-key create --name monitoring --scope certificates:read --certificate "*" --allow-ip 192.0.2.0/24 --expires-at 2030-01-31T00:00:00Z',
    },
  ],
  options: {
    name: { type: 'string', valueHint: 'NAME', required: true, description: 'what it is for' },
    scope: {
      type: 'string',
      valueHint: 'SCOPE',
      required: true,
      multiple: true,
      values: scopes,
      description: scopes.join(', '),
    },
    certificate: {
      type: 'string',
      valueHint: 'NAME',
      required: true,
      multiple: true,
      names: 'certificates',
      description: 'a certificate it may read, or "*" for any, also those to come',
    },
    'allow-ip': {
      type: 'string',
      valueHint: 'CIDR',
      multiple: true,
      description: 'where it counts: an address or a network such as 192.0.2.0/24 (default: anywhere)',
    },
    'expires-at': {
      type: 'string',
      valueHint: 'TIME',
      description: 'when it ends, such as 2030-01-31T00:00:00Z',
    },
  },
  run: async (args, terminal) => {
    const input = parseInput(createApiKeyInput, {
      name: args.name,
      scopes: args.scope,
      certificates: args.certificate,
      allowed_networks: args['allow-ip'],
      ...(args['expires-at'] !== undefined && { expires_at: args['expires-at'] }),
    });
    await withVault(args, terminal, 'create', async (vault) => {
      const { raw } = await createApiKey(vault, localCli, input);
      terminal.stdout.write(`${raw.expose()}\n`);
      terminal.stderr.write(
        'This is the only time the key is shown; keep it where only its client can read it.\n',
      );
    });
  },
});

const list = command({
  name: 'api-key list',
  description: 'list all API keys as JSON',
  examples: [{ does: 'See all keys, never their secrets', line: 'vault api-key list' }],
  options: {},
  run: (args, terminal) =>
    withVault(args, terminal, 'refuse', async (vault) => {
      await printPieces(jsonPieces(allApiKeys(vault)), terminal.stdout);
    }),
});

const revoke = byId(
  'api-key revoke',
  {
    description: 'end an API key at once',
    examples: [{ does: 'End a key; its next request is refused', line: 'vault api-key revoke --id 1' }],
  },
  'revoked',
  (vault, id) => revokeApiKey(vault, localCli, id),
);

const remove = byId(
  'api-key delete',
  {
    description: 'remove a revoked API key',
    examples: [{ does: 'Remove a key that is revoked', line: 'vault api-key delete --id 1' }],
  },
  'deleted',
  (vault, id) => deleteApiKey(vault, localCli, id),
);

export const apiKeyCommands = commandGroup('api-key', 'make, list, revoke and delete API keys', {
  create,
  list,
  revoke,
  delete: remove,
});

function byId(
  name: string,
  about: { readonly description: string; readonly examples: readonly [Example, ...Example[]] },
  done: string,
  act: (vault: Vault, id: number) => Promise<void>,
) {
  return command({
    name,
    ...about,
    options: idOption,
    run: (args, terminal) => {
      if (!/^[1-9]\d{0,14}$/.test(args.id)) {
        throw new Misuse(
          `--id: "${args.id}" is not the id of an API key`,
          'Write the number that "vault api-key list" shows.',
        );
      }
      return withVault(args, terminal, 'refuse', async (vault) => {
        await act(vault, Number(args.id));
        terminal.stderr.write(`API key ${args.id} is ${done}.\n`);
      });
    },
  });
}
