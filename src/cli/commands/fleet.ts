/** `vault fleet`: which host has which version of a certificate, as the clients report it. */
import { OperatorError } from '../../base/operator-error.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { deleteDeployment } from '../../domain/deployments/deployment-removal.ts';
import { type DeploymentState, deploymentStates } from '../../domain/deployments/deployment-state.ts';
import {
  type DeploymentSearch,
  type DeploymentView,
  deploymentView,
  findDeployments,
} from '../../domain/deployments/deployments.ts';
import { rolloutOf, rolloutText } from '../../domain/deployments/rollout.ts';
import type { Vault } from '../../domain/vault.ts';
import { requireCertificate } from '../../domain/versions/certificate-lookup.ts';
import { inPath } from '../remote/remote-vault.ts';
import { command, commandGroup } from '../runtime/command.ts';
import { onVault } from '../runtime/with-vault.ts';
import { Misuse } from '../terminal/misuse.ts';
import { jsonOption, printList } from '../terminal/table.ts';
import { certificatePath, rolloutThere, suggestingThere } from './certificate/certificates-there.ts';
import { labelFilterOption, labelQuery, labelsToFind } from './label-options.ts';

const status = command({
  name: 'fleet status',
  description: 'List hosts with the version that each has installed',
  examples: [
    { does: 'List all; exit code 1 unless all are current', line: 'vault fleet status' },
    { does: 'List failed reloads and verifications', line: 'vault fleet status --state failing' },
    { does: 'List where a certificate is installed', line: 'vault fleet status --certificate web' },
    { does: 'List those of the certificates of a team', line: 'vault fleet status --label team=web --json' },
  ],
  options: {
    certificate: {
      type: 'string',
      valueHint: 'NAME',
      names: 'certificates',
      description: 'only those of this certificate',
    },
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
    const { certificate } = args;
    const labels = labelsToFind(args.label);
    if (certificate !== undefined && labels !== undefined) {
      throw new Misuse('--certificate and --label exclude each other', 'Use one of them.');
    }
    const state = args.state === undefined ? undefined : stateFrom(args.state);
    const { found, rollout } = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        if (certificate !== undefined)
          await requireCertificate(vault.db.reader, certificate, { suggest: true });
        return {
          found: await deploymentsHere(vault, { certificate, state, labels }),
          rollout: certificate === undefined ? undefined : await rolloutOf(vault, certificate),
        };
      },
      async (remote) => {
        if (certificate === undefined) {
          return {
            found: await remote.list<DeploymentView>('/deployments', { state, label: labelQuery(labels) }),
          };
        }
        const all = remote.list<DeploymentView>(certificatePath(certificate, '/deployments'), { state });
        return {
          found: await suggestingThere(remote, certificate, all),
          rollout: await rolloutThere(remote, certificate),
        };
      },
    );
    const progress = rollout && !args.json ? rolloutText(rollout) : undefined;
    if (progress !== undefined) terminal.stdout.write(`${progress}\n\n`);
    const sorted = found.toSorted((one, other) => (sortKey(one) < sortKey(other) ? -1 : 1));
    const isFiltered = state !== undefined || labels !== undefined || certificate !== undefined;
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

async function deploymentsHere(
  vault: Vault,
  search: Omit<DeploymentSearch, 'limit'>,
): Promise<DeploymentView[]> {
  const rows = findDeployments(vault, { ...search, limit: Number.POSITIVE_INFINITY });
  return (await Array.fromAsync(rows)).flat().map(deploymentView);
}

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
  const others = counts.reduce((sum, [, count]) => sum + count, 0);
  throw new OperatorError(`${others} of ${all.length} deployments not current: ${list}`);
}

const forget = command({
  name: 'fleet forget',
  description: 'Delete what a host reported that is gone',
  examples: [
    {
      does: 'Delete the jobs of a host that no longer exists',
      line: 'vault fleet forget --certificate web --host www2',
    },
  ],
  options: {
    certificate: {
      type: 'string',
      valueHint: 'NAME',
      names: 'certificates',
      required: true,
      description: 'the certificate that the host installed',
    },
    host: { type: 'string', valueHint: 'HOST', description: 'the name of the host' },
    job: { type: 'string', valueHint: 'JOB', description: 'only this job (default: all jobs of the host)' },
    id: { type: 'string', valueHint: 'ID', description: 'the id in the API, instead of --host' },
  },
  run: async (args, terminal) => {
    const { certificate, host, job, id: single } = args;
    if ((host === undefined) === (single === undefined) || (single !== undefined && job !== undefined)) {
      throw new Misuse('select a host or an id', 'Use --host HOST, perhaps with --job JOB, or --id ID.');
    }
    const choose = (all: readonly DeploymentView[]) => {
      const chosen = all.filter((one) => one.host === host && (job === undefined || one.job === job));
      if (chosen.length > 0) return chosen;
      const what = job === undefined ? 'deployment' : `job ${job}`;
      throw new OperatorError(`certificate ${certificate} has no ${what} on host ${host}`, {
        hint: `Try: vault fleet status --certificate ${certificate}`,
      });
    };
    const path = certificatePath(certificate, '/deployments');
    const forgotten = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        await requireCertificate(vault.db.reader, certificate, { suggest: true });
        const chosen =
          single === undefined
            ? choose(await deploymentsHere(vault, { certificate })).map(idAndText)
            : [[single, single] as const];
        for (const [id] of chosen) await deleteDeployment(vault, localCli, { certificate, name: id });
        return chosen;
      },
      async (remote) => {
        const remove = (id: string) =>
          suggestingThere(remote, certificate, remote.send('DELETE', `${path}/${inPath(id)}`));
        const all = () => suggestingThere(remote, certificate, remote.list<DeploymentView>(path));
        const chosen =
          single === undefined ? choose(await all()).map(idAndText) : [[single, single] as const];
        for (const [id] of chosen) await remove(id);
        return chosen;
      },
    );
    for (const [, text] of forgotten) terminal.stderr.write(`Deleted ${text}.\n`);
  },
});

function idAndText({ id, job, host, destination }: DeploymentView) {
  return [id, `job ${job} on host ${host} (${destination})`] as const;
}

export const fleetCommands = commandGroup('fleet', 'Show where certificates are installed', {
  status,
  forget,
});
