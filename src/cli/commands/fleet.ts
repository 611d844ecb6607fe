/** `vault fleet status`: which host has which version of a certificate, as the clients report it. */
import { OperatorError } from '../../base/operator-error.ts';
import { type DeploymentState, deploymentStates } from '../../domain/deployments/deployment-state.ts';
import {
  type DeploymentView,
  deploymentView,
  findDeployments,
} from '../../domain/deployments/deployments.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { onVault } from '../runtime/with-vault.ts';
import { Misuse } from '../terminal/misuse.ts';
import { jsonOption, printList } from '../terminal/table.ts';
import { labelFilterOption, labelQuery, labelsToFind } from './label-options.ts';

const status = command({
  name: 'fleet status',
  description: 'List hosts with the version that each has installed',
  examples: [
    { does: 'List all; exit code 1 unless all are current', line: 'vault fleet status' },
    { does: 'List failed reloads and verifications', line: 'vault fleet status --state failing' },
    { does: 'List those of the certificates of a team', line: 'vault fleet status --label team=web --json' },
  ],
  options: {
    state: {
      type: 'string',
      valueHint: 'STATE',
      values: deploymentStates,
      description: `only those in this state: ${deploymentStates.join(', ')}`,
    },
    label: {
      ...labelFilterOption.label,
      description: 'only those of certificates with this label, such as team=web; repeat it for several',
    },
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const labels = labelsToFind(args.label);
    const state = args.state === undefined ? undefined : stateFrom(args.state);
    const found = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const rows = findDeployments(vault, { state, labels, limit: Number.POSITIVE_INFINITY });
        return (await Array.fromAsync(rows)).flat().map(deploymentView);
      },
      (remote) => remote.list<DeploymentView>('/deployments', { state, label: labelQuery(labels) }),
    );
    const sorted = found.toSorted((one, other) => (sortKey(one) < sortKey(other) ? -1 : 1));
    const isFiltered = state !== undefined || labels !== undefined;
    printList(terminal, args, sorted, {
      none: isFiltered ? 'No matching deployments.' : 'No deployments yet.',
      json: ({ certificate, host, job, version, state: its, last_seen_at }) => ({
        ...{ certificate, host, job, version },
        ...{ state: its, last_seen_at },
      }),
      columns: [
        { title: 'CERTIFICATE', holds: 'name' },
        { title: 'HOST', holds: 'name' },
        { title: 'JOB', holds: 'name' },
        'VERSION',
        'STATE',
        { title: 'LAST SEEN', holds: 'time' },
        { title: 'RESULT', holds: 'text' },
      ],
      row: (deployment) => [
        ...[deployment.certificate, deployment.host, deployment.job],
        ...[String(deployment.version ?? '-'), deployment.state, deployment.last_seen_at],
        resultOf(deployment),
      ],
    });
    requireAllCurrent(sorted);
  },
});

/** Throws Misuse. */
function stateFrom(text: string): DeploymentState {
  const state = deploymentStates.find((known) => known === text);
  if (state !== undefined) return state;
  throw new Misuse(`--state: unknown state "${text}"`, `Use one of ${deploymentStates.join(', ')}.`);
}

/** Line breaks are in none of these. */
function sortKey({ certificate, host, job, id }: DeploymentView): string {
  return [certificate, host, job, id].join('\n');
}

/** What failed. */
function resultOf({ error, reload, verify }: DeploymentView): string {
  if (error !== null) return error;
  for (const [name, step] of [['reload', reload] as const, ['verification', verify] as const]) {
    if (step?.result === 'failed') return `${name} failed${step.output === null ? '' : `: ${step.output}`}`;
  }
  return '-';
}

/** Throws OperatorError, which gives scripts the exit code 1, with the number in each other state. */
function requireAllCurrent(all: readonly DeploymentView[]): void {
  const counts = deploymentStates
    .filter((state): state is Exclude<DeploymentState, 'current'> => state !== 'current')
    .map((state) => [state, all.filter((one) => one.state === state).length] as const)
    .filter(([, count]) => count > 0);
  if (counts.length === 0) return;
  const list = counts.map(([state, count]) => `${count} ${state}`).join(', ');
  throw new OperatorError(`not all of ${all.length} deployments are current: ${list}`);
}

export const fleetCommands = commandGroup('fleet', 'Show where certificates are installed', { status });
