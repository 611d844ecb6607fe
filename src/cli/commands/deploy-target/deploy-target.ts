/** `vault deploy-target …`: places that cannot fetch certificates, so that the vault brings them there. */
import { OperatorError } from '../../../base/operator-error.ts';
import { Problem } from '../../../base/problem.ts';
import { Secret } from '../../../base/secret.ts';
import { readSecretMapping } from '../../../dns/providers/provider-types.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import {
  createDeployTargetInput,
  updateDeployTargetInput,
} from '../../../domain/deploy-targets/deploy-target-inputs.ts';
import {
  addDeployTarget,
  changeDeployTarget,
  type DeployTargetSummary,
  type DeployTargetView,
  removeDeployTarget,
  type TargetCertificateView,
  targetCertificateView,
  viewDeployTarget,
  viewDeployTargets,
} from '../../../domain/deploy-targets/deploy-targets.ts';
import { deployNow } from '../../../domain/deploy-targets/deploying.ts';
import { parseInput } from '../../../domain/inputs.ts';
import { targetTypes } from '../../../targets/target-types.ts';
import { inPath } from '../../remote/remote-vault.ts';
import { command, commandGroup, commandWithoutVault } from '../../runtime/command.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { outboundOptions } from '../../settings/outbound-settings.ts';
import { readInput } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';

const nameOption = {
  name: {
    type: 'string',
    valueHint: 'NAME',
    required: true,
    positional: 'or-flag',
    description: 'the name of the target',
  },
} as const;

const certificateOption = {
  type: 'string',
  valueHint: 'NAME',
  multiple: true,
  names: 'certificates',
} as const;

const add = command({
  name: 'deploy-target add',
  description: 'Add a place on which the vault installs certificates',
  examples: [
    {
      does: 'Install two certificates on a server by SSH',
      line: 'vault deploy-target add --name web1 --type ssh --certificate web --certificate api --secret-file web1.yaml',
    },
    {
      does: 'Keep a TLS secret of Kubernetes current',
      line: 'vault deploy-target add --name cluster --type kubernetes --certificate web --secret-file cluster.yaml',
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

const list = command({
  name: 'deploy-target list',
  description: 'List deploy targets with how many certificates are current',
  examples: [{ does: 'List all targets', line: 'vault deploy-target list' }],
  options: jsonOption,
  run: async (args, terminal) => {
    const targets = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => (await Array.fromAsync(viewDeployTargets(vault))).flat(),
      (remote) => remote.list<DeployTargetSummary>('/deploy-targets'),
    );
    printList(terminal, args, targets, {
      none: 'No deploy targets yet.\n  Try: vault deploy-target add --help',
      columns: [
        { title: 'TARGET', holds: 'name' },
        'TYPE',
        { title: 'HOST', holds: 'name' },
        'CURRENT',
        'WAITING',
        'FAILING',
      ],
      row: ({ name, type, host, counts }) => [
        ...[name, type, host],
        ...[counts.current, counts.waiting, counts.failing].map(String),
      ],
    });
  },
});

const show = command({
  name: 'deploy-target show',
  description: 'List the certificates of a target with what is installed',
  examples: [{ does: 'See which version is installed', line: 'vault deploy-target show --name web1' }],
  options: { ...nameOption, ...jsonOption },
  run: async (args, terminal) => {
    const { certificates } = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => viewDeployTarget(vault, args.name),
      (remote) => remote.get<DeployTargetView>(targetPath(args.name)),
    );
    printCertificates(terminal, args, certificates);
  },
});

const update = command({
  name: 'deploy-target update',
  description: 'Change a target; options not given stay the same',
  examples: [
    {
      does: 'Install another certificate there, too',
      line: 'vault deploy-target update --name web1 --add-certificate mail',
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

const run = command({
  name: 'deploy-target run',
  description: 'Install now what is not installed yet',
  examples: [
    { does: 'Install all certificates of a target', line: 'vault deploy-target run --name web1' },
    { does: 'Install one of them', line: 'vault deploy-target run --name web1 --certificate web' },
  ],
  options: {
    ...nameOption,
    certificate: {
      type: 'string',
      valueHint: 'NAME',
      names: 'certificates',
      description: 'only this certificate of the target',
    },
    ...outboundOptions,
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const { name, certificate: only } = args;
    const failures: string[] = [];
    const chosen = ({ certificates }: DeployTargetView) => {
      const found = certificates.filter((one) => only === undefined || one.certificate === only);
      if (only !== undefined && found.length === 0) throw notThere(name, only);
      return found;
    };
    const all = async (
      certificates: readonly TargetCertificateView[],
      deploy: (certificate: string) => Promise<TargetCertificateView>,
    ) => {
      for (const { certificate } of certificates) {
        try {
          await deploy(certificate);
        } catch (error) {
          if (!(error instanceof Problem) || error.code !== 'deploy_failed') throw error;
          failures.push(`${certificate}: ${error.message}`);
        }
      }
    };
    const after = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const stop = stopSignal();
        await all(chosen(await viewDeployTarget(vault, name)), async (certificate) =>
          targetCertificateView(await deployNow(vault, localCli, { target: name, certificate }, stop)),
        );
        return chosen(await viewDeployTarget(vault, name));
      },
      async (remote) => {
        if (args['allow-outbound'] !== undefined) {
          throw new Misuse(
            '--allow-outbound and --server exclude each other',
            'The server has its own settings.',
          );
        }
        const path = targetPath(name);
        await all(chosen(await remote.get<DeployTargetView>(path)), (certificate) =>
          remote.send<TargetCertificateView>('POST', `${path}/certificates/${inPath(certificate)}/deploy`),
        );
        return chosen(await remote.get<DeployTargetView>(path));
      },
    );
    printCertificates(terminal, args, after);
    if (failures.length > 0) throw new OperatorError(`failed on ${name}: ${failures.join('; ')}`);
  },
});

const remove = command({
  name: 'deploy-target remove',
  description: 'Remove a target with its settings; what is installed stays',
  examples: [{ does: 'Remove a target', line: 'vault deploy-target remove --name web1' }],
  options: nameOption,
  run: async (args, terminal) => {
    await onVault(
      args,
      terminal,
      'refuse',
      (vault) => removeDeployTarget(vault, localCli, args.name),
      (remote) => remote.send<void>('DELETE', targetPath(args.name)),
    );
    terminal.stderr.write(`Removed deploy target ${args.name}.\n`);
  },
});

const types = commandWithoutVault({
  name: 'deploy-target types',
  description: 'List the types of deploy targets',
  examples: [{ does: 'List the types', line: 'vault deploy-target types' }],
  options: jsonOption,
  run: async (args, terminal) => {
    const all = [...targetTypes.values()].map(({ type, title }) => ({ type, reaches: title }));
    printList(terminal, args, all, {
      none: 'No types.',
      columns: ['TYPE', 'REACHES'],
      row: ({ type, reaches }) => [type, reaches],
    });
  },
});

function printCertificates(
  terminal: Terminal,
  args: { readonly json: boolean },
  certificates: readonly TargetCertificateView[],
): void {
  printList(terminal, args, certificates, {
    none: 'No certificates on this target.\n  Try: vault deploy-target update --help',
    columns: [
      { title: 'CERTIFICATE', holds: 'name' },
      { title: 'DESTINATION', holds: 'text' },
      'STATE',
      'VERSION',
      { title: 'NEXT', holds: 'time' },
      { title: 'LAST ERROR', holds: 'text' },
    ],
    row: (one) => [
      ...[one.certificate, one.destination, one.state],
      one.version === null ? '-' : String(one.version),
      ...[one.next_attempt_at ?? '-', one.error ?? '-'],
    ],
  });
}

/** The settings of a secret file, as JSON. */
async function settingsFrom(type: string, file: string, terminal: Terminal): Promise<Secret> {
  const text = (await readInput(file, terminal)).toString('utf8');
  return new Secret(Buffer.from(JSON.stringify(await readSecretMapping({ type }, text))));
}

function sent(settings: Secret): unknown {
  return JSON.parse(settings.expose().toString('utf8'));
}

function targetPath(name: string): string {
  return `/deploy-targets/${inPath(name)}`;
}

function notThere(target: string, certificate: string): OperatorError {
  return new OperatorError(`${certificate} is not among the certificates of ${target}`, {
    hint: `Try: vault deploy-target show --name ${target}`,
  });
}

export const deployTargetCommands = commandGroup(
  'deploy-target',
  'Install certificates where no client can fetch them',
  { add, list, show, update, run, remove, types },
);
