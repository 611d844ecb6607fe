/** `vault endpoint …`: TLS servers whose certificate the vault checks. */
import { OperatorError } from '../../../base/operator-error.ts';
import { checkEndpoint } from '../../../domain/endpoints/endpoint-checking.ts';
import { type EndpointState, endpointStates } from '../../../domain/endpoints/endpoint-state.ts';
import { type EndpointSearch, type EndpointView, endpointView } from '../../../domain/endpoints/endpoints.ts';
import { command, commandGroup } from '../../runtime/command.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { endpointOptions } from '../../settings/endpoint-settings.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonOption, printList } from '../../terminal/table.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { labelFilterOption, labelsToFind } from '../label-options.ts';
import { adopt } from './endpoint-adopt.ts';
import { add, remove, update } from './endpoint-changes.ts';
import {
  addressOption,
  atAddress,
  checkingAll,
  endpointsHere,
  endpointsThere,
  refuseOwnRules,
} from './endpoint-choice.ts';
import { found } from './endpoint-found.ts';
import { removeScan, scan, scans } from './endpoint-scan.ts';
import { suggest } from './endpoint-suggest.ts';

const filterOptions = {
  certificate: {
    type: 'string',
    valueHint: 'NAME',
    names: 'certificates',
    description: 'only those of this certificate',
  },
  state: {
    type: 'string',
    valueHint: 'STATE',
    values: endpointStates,
    description: `only those in this state: ${endpointStates.join(', ')}`,
  },
  label: {
    ...labelFilterOption.label,
    description: 'only those of certificates with this label, such as team=web; repeat it for several',
  },
} as const;

const list = command({
  name: 'endpoint list',
  description: 'List endpoints with what they serve',
  examples: [
    { does: 'List all; exit code 1 unless all are current', line: 'vault endpoint list' },
    { does: 'List servers with an older version', line: 'vault endpoint list --state outdated' },
    { does: 'List the endpoints of a certificate', line: 'vault endpoint list --certificate web --json' },
  ],
  options: { ...filterOptions, ...jsonOption },
  run: async (args, terminal) => {
    const search = searchFrom(args);
    const found = await onVault(
      args,
      terminal,
      'refuse',
      (vault) => endpointsHere(vault, search),
      (remote) => endpointsThere(remote, search),
    );
    printEndpoints(
      terminal,
      args,
      found,
      Object.values(search).some((value) => value !== undefined),
    );
  },
});

const check = command({
  name: 'endpoint check',
  description: 'Check now what endpoints serve',
  examples: [
    { does: 'Check all; exit code 1 unless all are current', line: 'vault endpoint check' },
    { does: 'Check one server', line: 'vault endpoint check www.example.com:443' },
    { does: 'Check the endpoints of a certificate', line: 'vault endpoint check --certificate web' },
  ],
  options: {
    address: { ...addressOption.address, required: false, description: 'only this server' },
    ...filterOptions,
    'endpoint-allow': endpointOptions['endpoint-allow'],
    'endpoint-forbid': endpointOptions['endpoint-forbid'],
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const search = searchFrom(args);
    const choose = (all: readonly EndpointView[]) =>
      args.address === undefined ? all : atAddress(all, args.address);
    const checked = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const chosen = choose(await endpointsHere(vault, search));
        const stop = stopSignal();
        return checkingAll(chosen, async ({ id }) =>
          endpointView(await checkEndpoint(vault, id, stop), vault.world.now()),
        );
      },
      async (remote) => {
        refuseOwnRules(args, '--server', 'The server has its own settings.');
        const chosen = choose(await endpointsThere(remote, search));
        return checkingAll(chosen, ({ id }) => remote.send<EndpointView>('POST', `/endpoints/${id}/check`));
      },
    );
    const isFiltered =
      args.address !== undefined || Object.values(search).some((value) => value !== undefined);
    printEndpoints(terminal, args, checked, isFiltered);
  },
});

/** Throws Misuse. */
function searchFrom(args: {
  readonly certificate: string | undefined;
  readonly state: string | undefined;
  readonly label: readonly string[];
}): Pick<EndpointSearch, 'certificate' | 'state' | 'labels'> {
  const { certificate } = args;
  const labels = labelsToFind(args.label);
  if (certificate !== undefined && labels !== undefined) {
    throw new Misuse('--certificate and --label exclude each other', 'Use one of them.');
  }
  return { certificate, state: args.state === undefined ? undefined : stateFrom(args.state), labels };
}

/** Throws Misuse. */
function stateFrom(text: string): EndpointState {
  const state = endpointStates.find((known) => known === text);
  if (state !== undefined) return state;
  throw new Misuse(`--state: unknown state "${text}"`, `Use one of ${endpointStates.join(', ')}.`);
}

function printEndpoints(
  terminal: Terminal,
  args: { readonly json: boolean },
  found: readonly EndpointView[],
  isFiltered: boolean,
): void {
  const sorted = found.toSorted((one, other) => (sortKey(one) < sortKey(other) ? -1 : 1));
  printList(terminal, args, sorted, {
    none: isFiltered ? 'No matching endpoints.' : 'No endpoints yet.\n  Try: vault endpoint add --help',
    json: ({ address, certificate, state, fingerprint_sha256, checked_at }) => ({
      ...{ address, certificate, state },
      ...{ fingerprint_sha256, checked_at },
    }),
    columns: [
      { title: 'ADDRESS', holds: 'name' },
      { title: 'SERVER NAME', holds: 'name' },
      { title: 'CERTIFICATE', holds: 'name' },
      'STATE',
      { title: 'EXPIRES', holds: 'time' },
      { title: 'CHECKED', holds: 'time' },
      { title: 'REASON', holds: 'text' },
    ],
    row: (one) => [
      ...[one.address, one.server_name || 'none', one.certificate ?? '-', one.state],
      ...[one.not_after ?? '-', one.checked_at ?? '-', one.reason ?? '-'],
    ],
  });
  requireAllCurrent(sorted);
}

function sortKey({ address, server_name }: EndpointView): string {
  return `${address}\n${server_name}`;
}

/** Throws OperatorError, which gives scripts the exit code 1, with the number in each other state. */
function requireAllCurrent(all: readonly EndpointView[]): void {
  const counts = endpointStates
    .filter((state) => state !== 'current')
    .map((state) => [state, all.filter((one) => one.state === state).length] as const)
    .filter(([, count]) => count > 0);
  if (counts.length === 0) return;
  const text = counts.map(([state, count]) => `${count} ${state}`).join(', ');
  const others = counts.reduce((sum, [, count]) => sum + count, 0);
  throw new OperatorError(`${others} of ${all.length} endpoints not current: ${text}`);
}

export const endpointCommands = commandGroup('endpoint', 'Check what TLS servers really serve', {
  add,
  list,
  check,
  update,
  remove,
  suggest,
  scan,
  scans,
  'remove-scan': removeScan,
  found,
  adopt,
});
