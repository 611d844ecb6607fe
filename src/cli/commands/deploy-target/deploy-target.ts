/** `vault deploy-target …`: places that cannot fetch certificates, so that the vault installs them there. */
import { localCli } from '../../../domain/audit/audit.ts';
import {
  type DeployTargetSummary,
  type DeployTargetView,
  viewDeployTarget,
  viewDeployTargets,
} from '../../../domain/deploy-targets/deploy-target-views.ts';
import { removeDeployTarget } from '../../../domain/deploy-targets/deploy-targets.ts';
import { targetTypes } from '../../../targets/target-types.ts';
import { command, commandGroup, commandWithoutVault } from '../../runtime/command.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import { nameOption, printCertificates, targetPath } from './deploy-target-certificates.ts';
import { add, update } from './deploy-target-changes.ts';
import { run } from './deploy-target-run.ts';

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

export const deployTargetCommands = commandGroup(
  'deploy-target',
  'Install certificates where no client can fetch them',
  { add, list, show, update, run, remove, types },
);
