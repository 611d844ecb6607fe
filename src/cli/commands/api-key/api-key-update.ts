/** `vault api-key update`: changes what an API key may do and keeps its secret. */
import { roles } from '../../../base/role.ts';
import { changeApiKey } from '../../../domain/access/api-key-change.ts';
import { updateApiKeyInput } from '../../../domain/access/api-key-inputs.ts';
import { apiKeyIdFrom } from '../../../domain/access/api-key-names.ts';
import { allApiKeys } from '../../../domain/access/api-key-views.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import { futureMoment } from '../../../domain/input-strings.ts';
import { parseInput } from '../../../domain/inputs.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { labelsFrom, newLabelsOption } from '../label-options.ts';
import { idOption, rightsOptions } from './api-key-options.ts';
import { expiryOf, updateThere } from './api-key-there.ts';

/** The values of a repeatable option; undefined if it is not given. */
function given(values: readonly string[]): readonly string[] | undefined {
  return values.length > 0 ? values : undefined;
}

export const updateCommand = command({
  name: 'api-key update',
  description: 'Change an API key; options not given stay the same',
  examples: [
    {
      does: 'Let a key read one certificate, and no others',
      line: 'vault api-key update www --certificate web',
    },
    { does: 'Remove the expiry of a key', line: 'vault api-key update www --expires-at none' },
    { does: 'Let a key be used from any network', line: 'vault api-key update www --allow-ip "*"' },
    {
      does: 'Let a key work without its client certificate',
      line: 'vault api-key update www --client-certificate none',
    },
  ],
  options: {
    ...idOption,
    name: { type: 'string', valueHint: 'NAME', description: 'a new name' },
    scope: {
      ...rightsOptions.scope,
      description: `${rightsOptions.scope.description}; the given scopes replace all current ones`,
    },
    certificate: {
      ...rightsOptions.certificate,
      description: `${rightsOptions.certificate.description}; replaces the current allowlist`,
    },
    'certificate-label': {
      ...rightsOptions['certificate-label'],
      description: 'a label of certificates the key may access, or none; replaces the current ones',
    },
    'allow-ip': {
      ...rightsOptions['allow-ip'],
      description:
        'an address or network the key may be used from, or "*" for any; replaces the current ones',
    },
    profile: {
      ...rightsOptions.profile,
      description:
        'a profile of a private CA for what the key has issued, or none for any; replaces the current ones',
    },
    role: {
      ...rightsOptions.role,
      values: [...roles, 'none'],
      description: 'what the key may administer over HTTP: viewer, operator, admin, or none',
    },
    reach: {
      ...rightsOptions.reach,
      description:
        'a label that confines what the key does with its role, or none; replaces the current ones',
    },
    ...newLabelsOption,
    'client-certificate': {
      ...rightsOptions['client-certificate'],
      description:
        'a certificate of a private CA; the key works only over HTTPS with it as client certificate; or none',
    },
    'expires-at': {
      ...rightsOptions['expires-at'],
      description: `${rightsOptions['expires-at'].description.replace(' (default: never)', '')}; or none`,
    },
  },
  run: async (args, terminal) => {
    const expiry = args['expires-at'];
    const changes = {
      name: args.name,
      scopes: given(args.scope),
      certificates: given(args.certificate),
      allowed_networks: given(args['allow-ip']),
      profiles: args.profile.length === 1 && args.profile[0] === 'none' ? [] : given(args.profile),
      certificate_labels: labelsFrom(args['certificate-label']),
      reach: labelsFrom(args.reach),
      labels: labelsFrom(args.label),
      role: args.role === 'none' ? null : args.role,
      client_certificate: args['client-certificate'] === 'none' ? null : args['client-certificate'],
      expires_at: expiry === 'none' ? null : expiry,
    };
    const named = Object.entries(changes).filter(([, value]) => value !== undefined);
    if (named.length === 0) throw new Misuse('nothing to change', 'Try: vault api-key update --help');
    const expires_at = futureMoment(terminal.world.now()).nullable().optional();
    const input = parseInput(updateApiKeyInput.extend({ expires_at }), Object.fromEntries(named));
    const { id, isChanged } = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const its = await apiKeyIdFrom(allApiKeys(vault), args.id, 'not revoked');
        return { id: its, isChanged: await changeApiKey(vault, localCli, its, input) };
      },
      (remote) => updateThere(remote, args.id, { ...Object.fromEntries(named), ...expiryOf(input) }),
    );
    terminal.stderr.write(isChanged ? `Updated API key ${id}.\n` : `API key ${id} is unchanged.\n`);
  },
});
