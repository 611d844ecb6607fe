/** `vault deploy-target add` and `update`, with settings from a file. */
import { Secret } from '../../../base/secret.ts';
import { readSecretMapping } from '../../../dns/providers/provider-types.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import {
  createDeployTargetInput,
  updateDeployTargetInput,
} from '../../../domain/deploy-targets/deploy-target-inputs.ts';
import {
  type DeployTargetView,
  viewDeployTarget,
} from '../../../domain/deploy-targets/deploy-target-views.ts';
import {
  addDeployTarget,
  changeDeployTarget,
  requireType,
} from '../../../domain/deploy-targets/deploy-targets.ts';
import { parseInput } from '../../../domain/inputs.ts';
import { targetTypes } from '../../../targets/target-types.ts';
import { command } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { readInput } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { certificateOption, nameOption, notThere, targetPath } from './deploy-target-certificates.ts';

export const add = command({
  name: 'deploy-target add',
  description: 'Add a place on which the vault installs certificates',
  examples: [
    {
      does: 'Install two certificates on a server by SSH',
      line: 'vault deploy-target add --name web1 --type ssh --certificate web --certificate mail --secret-file web1.yaml',
    },
    {
      does: 'Keep a TLS secret of Kubernetes current',
      line: 'vault deploy-target add --name cluster --type kubernetes --certificate intranet --secret-file cluster.yaml',
    },
  ],
  options: {
    ...nameOption,
    type: {
      type: 'string',
      valueHint: 'TYPE',
      required: true,
      values: [...targetTypes.keys()],
      description: `the kind of place: ${[...targetTypes.keys()].join(', ')}`,
    },
    certificate: {
      ...certificateOption,
      description: 'a certificate to install there; repeat it for several',
    },
    'secret-file': {
      type: 'string',
      valueHint: 'FILE',
      required: true,
      description: 'a YAML or JSON file with settings and credentials; - for standard input',
    },
  },
  run: async (args, terminal) => {
    const { name, type, certificate: certificates, 'secret-file': file } = args;
    const input = parseInput(createDeployTargetInput, { name, type, certificates });
    requireType(type);
    const settings = await settingsFrom(type, file, terminal);
    await onVault(
      args,
      terminal,
      'create',
      (vault) => addDeployTarget(vault, localCli, input, settings),
      (remote) => remote.send<void>('POST', '/deploy-targets', { ...input, settings: sent(settings) }),
    );
    terminal.stderr.write(`Added deploy target ${name}.\n  Try: vault deploy-target run --name ${name}\n`);
  },
});

export const update = command({
  name: 'deploy-target update',
  description: 'Change a target; options not given stay the same',
  examples: [
    {
      does: 'Install another certificate there, too',
      line: 'vault deploy-target update --name web1 --add-certificate intranet',
    },
    { does: 'Replace all settings', line: 'vault deploy-target update --name web1 --secret-file web1.yaml' },
  ],
  options: {
    ...nameOption,
    'add-certificate': { ...certificateOption, description: 'install this certificate there, too' },
    'remove-certificate': {
      ...certificateOption,
      description: 'no longer install this certificate there; what is installed stays',
    },
    'secret-file': {
      type: 'string',
      valueHint: 'FILE',
      description: 'a YAML or JSON file that replaces all settings of the target; - for standard input',
    },
  },
  run: async (args, terminal) => {
    const { name, 'secret-file': file, 'add-certificate': added, 'remove-certificate': removed } = args;
    if (file === undefined && added.length + removed.length === 0) {
      throw new Misuse('nothing to change', 'Try: vault deploy-target update --help');
    }
    const settingsOf = async ({ type }: DeployTargetView) =>
      file === undefined ? undefined : settingsFrom(type, file, terminal);
    const changesOf = ({ certificates }: DeployTargetView) => {
      const held = certificates.map(({ certificate }) => certificate);
      for (const one of removed) if (!held.includes(one)) throw notThere(name, one);
      if (added.length + removed.length === 0) return {};
      return { certificates: [...held.filter((one) => !removed.includes(one)), ...added] };
    };
    await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const before = await viewDeployTarget(vault, name);
        const changes = parseInput(updateDeployTargetInput, changesOf(before));
        await changeDeployTarget(vault, localCli, name, changes, await settingsOf(before));
      },
      async (remote) => {
        const before = await remote.get<DeployTargetView>(targetPath(name));
        const settings = await settingsOf(before);
        const changes = { ...changesOf(before), ...(settings && { settings: sent(settings) }) };
        await remote.send<DeployTargetView>('PATCH', targetPath(name), changes);
      },
    );
    terminal.stderr.write(`Updated deploy target ${name}.\n`);
  },
});

/** The settings of a secret file, as JSON. */
async function settingsFrom(type: string, file: string, terminal: Terminal): Promise<Secret> {
  const text = (await readInput(file, terminal)).toString('utf8');
  return new Secret(Buffer.from(JSON.stringify(await readSecretMapping({ type }, text))));
}

function sent(settings: Secret): unknown {
  return JSON.parse(settings.expose().toString('utf8'));
}
